"""User-defined functions and aggregates with drawn Java bodies, and calls of them in statements.

Bodies stay inside of the subset of docs/functions.md, so a difference is one of values, of checks or of words. Names that Cassandra 5.0.8
cannot compile on Java 17 (ArrayList, HashMap) are left out.
"""

from dataclasses import dataclass

import values
from values import Type, freeze, scalar

JAVA = {"int": "int", "bigint": "long", "double": "double", "float": "float", "smallint": "short", "tinyint": "byte", "boolean": "boolean", "text": "String"}
BOXES = {"int": "Integer", "bigint": "Long", "double": "Double", "float": "Float", "smallint": "Short", "tinyint": "Byte", "boolean": "Boolean", "text": "String"}
SIMPLE = ["int", "int", "bigint", "double", "text", "text", "boolean", "float", "smallint", "tinyint"]
LISTS = [Type("list", (scalar("int"),)), Type("set", (scalar("text"),)), Type("map", (scalar("text"), scalar("int")))]
CONSTANTS = {
    "int": ["0", "1", "-1", "7", "31", "2147483647", "-2147483648"],
    "bigint": ["0L", "1L", "-1L", "4294967296L", "9223372036854775807L"],
    "double": ["0.0", "1.5", "-2.25", "1e10", "Double.NaN", "100.0"],
    "float": ["0.5f", "-1.0f", "3e10f"],
    "boolean": ["true", "false"],
    "text": ['"x"', '""', '"a,b"', '" pad "', '"42"'],
}
ARITHMETIC = {"int": "+ - * / % & | ^ << >> >>>".split(), "bigint": "+ - * / % & | ^".split(), "double": "+ - * / %".split(), "float": "+ - * /".split()}
NUMBERS = ["int", "bigint", "double", "float", "smallint", "tinyint"]


@dataclass
class Function:
    name: str
    arguments: tuple
    returns: Type
    text: str
    aggregate: bool = False

    def signature(self):
        return f"{self.name}({', '.join(str(ty) for ty in self.arguments)})"

    def drop(self):
        return f"DROP {'AGGREGATE' if self.aggregate else 'FUNCTION'} {self.signature()}"


class Body:
    """Draws a body for arguments of given types; `boxed`: they may be null."""

    def __init__(self, rng, arguments, boxed):
        self.rng, self.arguments, self.boxed = rng, arguments, boxed

    def named(self, name):
        return [f"a{at}" for at, ty in enumerate(self.arguments) if ty.name == name]

    def expression(self, name, depth=2):
        """Java text of an expression of this CQL type."""
        rng, e = self.rng, lambda other: self.expression(other, depth - 1)
        if name in ("smallint", "tinyint"):
            return f"({JAVA[name]}) ({e('int')})"
        names = self.named(name)
        if depth <= 0 or rng.random() < 0.15:
            return rng.choice(names * 3 + CONSTANTS[name])
        if name in ARITHMETIC and rng.random() < 0.5:
            return f"({e(name)} {rng.choice(ARITHMETIC[name])} {e(name)})"
        return rng.choice(self.forms(name, e))()

    def forms(self, name, e):
        rng = self.rng
        either = lambda: f"({e('boolean')} ? {e(name)} : {e(name)})"
        number = lambda: e(rng.choice(["int", "bigint", "double"]))
        if name == "int":
            found = [either, lambda: f"(int) ({number()})", lambda: f"({e('text')}).length()", lambda: f"Math.max({e('int')}, {e('int')})", lambda: f"Math.abs({e('int')})",
                     lambda: f"({e('text')}).hashCode()", lambda: f"({e('text')}).compareTo({e('text')})", lambda: f"Integer.parseInt({e('text')})"]  # fmt: skip
            for kind in ("list", "set", "map"):
                for one in self.named(kind):
                    found += [lambda one=one: f"{one}.size()"] * 3
            found += [lambda one=one: f"{one}.get(0)" for one in self.named("list")]
            return found
        if name == "bigint":
            return [either, lambda: f"(long) ({number()})", lambda: f"Math.round({e('double')})", lambda: f"Long.reverse({e('bigint')})", lambda: f"Math.multiplyExact({e('bigint')}, {e('bigint')})"]
        if name in ("double", "float"):
            return [either, lambda: f"({JAVA[name]}) ({number()})", lambda: f"({JAVA[name]}) Math.{rng.choice(['floor', 'sqrt', 'abs', 'signum'])}({e('double')})"]
        if name == "boolean":
            return [either, lambda: f"({number()} {rng.choice(['<', '<=', '>', '==', '!='])} {number()})", lambda: f"!({e('boolean')})",
                    lambda: f"({e('text')}).{rng.choice(['equals', 'contains', 'startsWith'])}({e('text')})", lambda: f"({e('boolean')} {rng.choice(['&&', '||', '^'])} {e('boolean')})"]  # fmt: skip
        return [either, lambda: f"({e('text')} + {e(rng.choice(['int', 'bigint', 'double', 'boolean', 'text', 'float']))})", lambda: f"String.valueOf({number()})",
                lambda: f"({e('text')}).{rng.choice(['toUpperCase', 'toLowerCase', 'trim'])}()", lambda: f"({e('text')}).substring({e('int')} & 1)",
                lambda: f"({e('text')}).replace({e('text')}, {e('text')})", lambda: f"new StringBuilder({e('text')}).append({number()}).reverse().toString()"]  # fmt: skip

    def guard(self, otherwise):
        """What a body that may be called with nulls begins with; now and then nothing."""
        if not self.boxed or self.rng.random() < 0.15 or not self.arguments:
            return ""
        asked = " || ".join(f"a{at} == null" for at in range(len(self.arguments)))
        return f"if ({asked}) return {otherwise}; "

    def of(self, returns):
        rng, name = self.rng, returns.name
        if name in ("list", "set", "map", "tuple", "udt"):
            same = [f"a{at}" for at, ty in enumerate(self.arguments) if ty == returns]
            return f"return {rng.choice(same) if same else 'null'};"
        start = self.guard(rng.choice(["null", *CONSTANTS.get(name, ["null"])]))
        kind = rng.random()
        if kind < 0.6:
            return f"{start}return {self.expression(name, 3)};"
        if kind < 0.75:
            return f"{start}int n = 0; for (int i = 0; i < {rng.choice([3, 10, 50])}; i++) {{ if (i % 3 == 1) continue; n += i * ({self.expression('int', 1)}); }} " + (
                f"return {'' if name == 'int' else '(' + JAVA[name] + ') '}n;" if name in NUMBERS else f"return {'n > 0' if name == 'boolean' else 'String.valueOf(n)'};"
            )
        if kind < 0.85:
            return f"{start}try {{ return {self.expression(name, 2)}; }} catch (ArithmeticException e) {{ return {rng.choice(CONSTANTS.get(name, ['(' + JAVA[name] + ') 0']))}; }}"
        if kind < 0.92:
            return f"{start}if ({self.expression('boolean', 2)}) return {self.expression(name, 2)}; else return {self.expression(name, 1)};"
        return f"{start}{JAVA[name]} x = {self.expression(name, 2)}; if ({self.expression('boolean', 1)}) throw new RuntimeException(\"no \" + x); return x;"


def drawn_type(rng, udts):
    kind = rng.random()
    if kind < 0.85:
        return scalar(rng.choice(SIMPLE))
    if kind < 0.95 or not udts:
        return rng.choice(LISTS)
    return rng.choice(udts)


def create(rng, name, arguments, returns, body, null=None):
    null = null or rng.choice(["CALLED", "RETURNS NULL"])
    head = rng.choice(["CREATE FUNCTION", "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", "CREATE FUNCTION IF NOT EXISTS"])
    given = ", ".join(f"a{at} {spelled(rng, ty)}" for at, ty in enumerate(arguments))
    drawn = body(null == "CALLED")
    quoted = f"$${drawn}$$" if rng.random() < 0.7 else "'" + drawn.replace("'", "''") + "'"
    return f"{head} {name} ({given}) {null} ON NULL INPUT RETURNS {spelled(rng, returns)} LANGUAGE java AS {quoted}"


def spelled(rng, ty):
    """Frozen or not does not matter for an argument; the second is refused for some."""
    return str(freeze(ty)) if ty.inner and rng.random() < 0.1 else str(ty)


def random_function(rng, number, udts):
    # few names, so that there are overloads and functions that exist already
    name = f"f{rng.randrange(number + 1)}"
    arguments = tuple(drawn_type(rng, udts) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])))
    returns = rng.choice([*arguments, scalar(rng.choice(SIMPLE))]) if rng.random() < 0.9 else drawn_type(rng, udts)
    body = lambda boxed: Body(rng, arguments, boxed).of(returns)
    return Function(name, arguments, returns, create(rng, name, arguments, returns, body))


def random_aggregate(rng, number, udts):
    """A function of states, sometimes one of the end, and the aggregate; whatever of them is refused, the next is tried."""
    state = scalar(rng.choice(["int", "bigint", "double", "text"]))
    over = scalar(rng.choice(["int", "bigint", "double", "text", "boolean"]))
    state_body = lambda boxed: Body(rng, (state, over), boxed).of(state)
    made = [Function(f"step{number}", (state, over), state, create(rng, f"step{number}", (state, over), state, state_body))]
    returns, parts = state, [f"SFUNC step{number}" if rng.random() < 0.97 else "SFUNC nosuch", f"STYPE {state}"]
    if rng.random() < 0.4:
        returns = scalar(rng.choice(["text", "int", "double"]))
        final = lambda boxed: Body(rng, (state,), boxed).of(returns)
        made.append(Function(f"end{number}", (state,), returns, create(rng, f"end{number}", (state,), returns, final)))
        parts.append(f"FINALFUNC end{number}")
    if rng.random() < 0.7:
        given = state if rng.random() < 0.95 else scalar("text")
        value = values.random_value(rng, given, 0)
        parts.append(f"INITCOND {values.literal(given, value)}")
    text = f"CREATE {'OR REPLACE ' if rng.random() < 0.2 else ''}AGGREGATE g{number} ({over if rng.random() < 0.96 else 'blob'}) {' '.join(parts)}"
    return [*made, Function(f"g{number}", (over,), returns, text, True)]


def argument(w, ty, columns, depth):
    """A term or selector of this type: a column, a value, a call."""
    fit = [column.name for column in columns if column.type == ty]
    if fit and w.chance(0.75):
        return w.pick(fit)
    if depth and w.chance(0.3):
        inner = call(w, columns, ty, depth - 1)
        if inner:
            return inner
    return w.value(ty, values.random_value(w.rng, ty, 0.1) if not w.chance(0.05) else None)


def call(w, columns, returns=None, depth=1, aggregates=False):
    """A call of a function that there is, over these columns; None if none fits."""
    fit = [one for one in w.schema.functions if (returns is None or one.returns == returns) and (aggregates or not one.aggregate)]
    if not fit:
        return None
    found = w.pick(fit)
    given = [argument(w, ty, columns, depth) for ty in found.arguments]
    if w.mistake(0.2) and given:
        given.pop()
    name = f"{w.schema.keyspace}.{found.name}" if w.chance(0.1) else found.name
    return f"{name}({', '.join(given)})"
