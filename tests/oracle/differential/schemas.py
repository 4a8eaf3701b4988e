"""Random tables: keys, orders, statics, every type, counters, COMPACT STORAGE."""

from dataclasses import dataclass, field

import values
from values import Type, freeze, random_type, scalar

POOL = 5
KEY_POOL = 3


@dataclass
class Column:
    name: str
    type: Type
    kind: str
    """partition, clustering, static or regular"""
    descending: bool = False
    pool: list = field(default_factory=list)


@dataclass
class Table:
    name: str
    columns: list
    options: list
    counter: bool = False
    compact: bool = False
    conditional: bool = False
    """Conditional statements are made for it."""
    viewed: bool = False
    """A view is made of it, or may be."""
    drifts: bool = False
    """Of a view: it has the key of its base and leaves out columns that may be all that keeps a row alive. Of a table: a view of it does."""
    lasting: bool = False
    """Nothing in it has a time to live."""

    def of(self, *kinds):
        return [column for column in self.columns if column.kind in kinds]

    def create(self):
        parts = [f"{c.name} {c.type}" + (" STATIC" if c.kind == "static" else "") for c in self.columns]
        partition = ", ".join(c.name for c in self.of("partition"))
        clustering = self.of("clustering")
        parts.append(f"PRIMARY KEY ({', '.join([f'({partition})'] + [c.name for c in clustering])})")
        options = list(self.options)
        if self.compact:
            options.insert(0, "COMPACT STORAGE")
        if any(c.descending for c in clustering):
            options.insert(0, f"CLUSTERING ORDER BY ({', '.join(c.name + (' DESC' if c.descending else ' ASC') for c in clustering)})")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})" + (f" WITH {' AND '.join(options)}" if options else "")


def key_type(rng, udts):
    """Mostly plain, sometimes a frozen collection or a tuple."""
    if rng.random() < 0.55:
        return scalar(rng.choice(["int", "int", "text", "bigint"]))
    if rng.random() < 0.8:
        return scalar(rng.choice(values.KEYS))
    return freeze(random_type(rng, udts, 1, key=True))


def with_pool(rng, column):
    """Few values, so that statements meet. Text that names its column tells columns apart in answers."""
    key = column.kind in ("partition", "clustering")
    if column.name == "e0":
        # exact in binary and no zero vector, so that similarities are the same to the bit
        column.pool = [[rng.choice([0.25, 1.0, -1.5, 2.0, 3.75]) for _ in range(column.type.size)] for _ in range(2 * POOL)]
        return column
    for _ in range(40):
        value = values.random_value(rng, column.type, 0 if key else 0.1)
        if column.kind == "partition" and values.encode(column.type, value) == b"":
            continue
        if value not in column.pool:
            column.pool.append(value)
        if len(column.pool) == (KEY_POOL if key else POOL):
            break
    return column


def random_table(rng, name, udts):
    counter = rng.random() < 0.1
    compact = rng.random() < 0.12
    columns = [Column(f"k{i}", key_type(rng, udts), "partition") for i in range(rng.choice([1, 1, 1, 2, 3]))]
    clustering = rng.choice([0, 1, 1, 2, 2, 3])
    for i in range(clustering):
        ty = key_type(rng, udts)
        columns.append(Column(f"c{i}", ty, "clustering", not ty.inner and rng.random() < 0.35))
    statics = rng.choice([0, 0, 1, 2]) if clustering and not compact else 0
    of_value = lambda: scalar("counter") if counter else random_type(rng, udts, 2)
    columns += [Column(f"s{i}", of_value(), "static") for i in range(statics)]
    regular = rng.choice([0, 1, 2, 3, 4, 5])
    if compact:
        regular = rng.choice([0, 1]) if clustering else rng.choice([1, 2, 3])
        of_value = lambda: scalar("counter") if counter else freeze(random_type(rng, udts, 1))
    if counter:
        regular = max(1, regular)
    columns += [Column(f"v{i}" if rng.random() < 0.9 else f'"V {i}"', of_value(), "regular") for i in range(regular)]
    if not counter and not compact and rng.random() < 0.15:
        columns.append(Column("e0", Type("vector", (scalar("float"),), True, rng.randint(2, 4)), "regular"))
    options = []
    if not counter and rng.random() < 0.12:
        options.append("default_time_to_live = 86400")
    if rng.random() < 0.2:
        # both servers flush now and then, each at its own moments
        options.append("memtable_flush_period_in_ms = 400")
    table = Table(name, [with_pool(rng, column) for column in columns], options, counter, compact)
    table.conditional = not counter and rng.random() < 0.35
    return table


@dataclass
class Schema:
    keyspace: str
    udts: list
    tables: list
    extras: list = field(default_factory=list)
    """Views, functions and indexes that are made before the first statement, as far as the servers take them."""
    late: list = field(default_factory=list)
    """Those that are made between statements."""
    views: list = field(default_factory=list)
    functions: list = field(default_factory=list)
    indexes: list = field(default_factory=list)
    """What has been made of these."""

    def statements(self):
        found = [f"CREATE TYPE {udt.udt} ({', '.join(f'{f} {t}' for f, t in zip(udt.fields, udt.inner))})" for udt in self.udts]
        return found + [table.create() for table in self.tables]


def random_schema(rng, keyspace):
    udts = []
    for number in range(rng.choice([0, 1, 2])):
        count = rng.randint(1, 3)
        inner = tuple(freeze(random_type(rng, udts, 1)) for _ in range(count))
        udts.append(Type("udt", inner, False, 0, f"u{number}", tuple(f"f{i}" for i in range(count))))
    return Schema(keyspace, udts, [random_table(rng, f"t{i}", udts) for i in range(rng.choice([1, 2]))])
