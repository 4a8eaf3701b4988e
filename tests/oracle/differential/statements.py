"""Random statements over a schema: what is common to all of them. INSERT, UPDATE, DELETE and BATCH are in `writes`, SELECT in `selects`.

A statement is a text in which each value stands as `\\0N\\0`; `finish` writes it as a literal or as a bind marker. So every value may be
bound, and the markers are numbered in the order of the text whatever order it was put together in.
"""

import re

import arithmetic
import functions
import mistakes
import values
from values import scalar
from wire import UNSET

TIME = 1_700_000_000_000_000
"""Write timestamps begin here: before the clock of the test, so that conditional writes, which take the clock, win on both."""
NOW = 2_000_000_000
"""What requests say that it is, in seconds: nothing that a test writes is purged before."""
BOUND = re.compile("\0(\\d+)\0")


class Writer:
    """Puts one statement together."""

    def __init__(self, rng, schema, number):
        self.rng, self.schema, self.number = rng, schema, number
        self.slots = []
        style = rng.random()
        self.marked = 0.0 if style < 0.55 else 0.8
        """How likely a value is bound."""
        self.named = self.marked and rng.random() < 0.15
        self.computed = rng.random() < 0.1
        """Whether values are results of operators and functions."""
        self.mistakes = 0
        self.wrong = rng.random() < 0.07
        """Whether mistakes are made on purpose."""

    def chance(self, of):
        return self.rng.random() < of

    def mistake(self, of=0.25):
        made = self.wrong and self.chance(of)
        self.mistakes += made
        return made

    def pick(self, items):
        return self.rng.choice(items)

    def value(self, ty, value):
        """A value's place in the text."""
        if self.mistake(0.15):
            ty, value = mistakes.other_value(self.rng, ty, value)
        self.slots.append((ty, value))
        return f"\0{len(self.slots) - 1}\0"

    def of_pool(self, column, null=0.0):
        """One of the column's values; now and then a new one, or one that is computed."""
        if self.chance(null):
            return self.value(column.type, None)
        # deliberate.py: a NaN as the key of a partition
        is_of_floats = column.kind == "partition" and any(values.has_within(column.type, name) for name in ("double", "float"))
        if self.computed and self.chance(0.15) and not is_of_floats:
            called = functions.call(self, [], column.type)
            if called or column.type.name in arithmetic.NUMBERS:
                return called or arithmetic.term(self, column.type, self.pick(column.pool) if column.pool else 1)
        if column.pool and self.chance(0.92):
            return self.value(column.type, self.pick(column.pool))
        return self.value(column.type, values.random_value(self.rng, column.type, null))

    def key(self, column):
        return self.of_pool(column, 0.01)

    def number_of(self, name, choices):
        return self.value(scalar(name), self.pick(choices))

    def using(self, table, ttl=True, soon=True):
        """USING TIMESTAMP and TTL, sometimes."""
        parts = []
        allowed = not table.counter or self.chance(0.03)
        if table.viewed:
            # deliberate.py: times to live and old timestamps under views
            return f" USING TIMESTAMP {self.number_of('bigint', [TIME + self.number * 1000 + 1])}" if self.chance(0.2) else ""
        if allowed and self.chance(0.35):
            parts.append(f"TIMESTAMP {self.number_of('bigint', [TIME + self.number * 1000 + self.pick([-5000, -1000, 0, 0, 1000])])}")
        if ttl and allowed and not table.lasting and self.chance(0.12):
            times = [100 if soon else 1000, 86400, 0, 630720000] + ([-1, 630720001] if self.mistake(0.8) else [])
            parts.append(f"TTL {self.number_of('int', times)}")
        self.rng.shuffle(parts)
        return f" USING {' AND '.join(parts)}" if parts else ""

    def conditional(self, table):
        # deliberate.py: old timestamps under views. A conditional statement takes the clock, so that every other one is older
        return self.chance(0.25 if table.conditional else 0.004) and not table.drifts

    def finish(self, text, **options):
        """The step: its text, its values (None: null), how it is sent."""
        bound, names = [], []

        def spell(found):
            ty, value = self.slots[int(found.group(1))]
            if not self.chance(self.marked):
                return values.literal(ty, value)
            bound.append(self.wire(ty, value))
            names.append(f"n{len(bound)}")
            return f":{names[-1]}" if self.named else "?"

        text = BOUND.sub(spell, text)
        if self.mistake(0.2):
            text = mistakes.of_text(self.rng, text)
        if self.mistake(0.05) and bound:
            bound = bound[:-1] if self.chance(0.5) else bound + [b"\0"]
        step = {"text": text, "timestamp": TIME + self.number * 1000, "now": NOW + self.number, **options}
        if bound:
            step["values"] = bound
        if self.mistakes:
            step["mistakes"] = self.mistakes
        step["prepared"] = bool(bound) and self.chance(0.85) or self.chance(0.15)
        return step

    def wire(self, ty, value):
        if self.chance(0.01):
            return UNSET
        data = values.encode(ty, value)
        return mistakes.of_bytes(self.rng, data) if self.mistake(0.08) else data
