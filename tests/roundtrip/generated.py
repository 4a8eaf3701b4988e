"""Tables and writes from a seed. Each write is done twice: as a statement with bound bytes, and on the naive twin.

Every statement gives its timestamp; none is given twice. Every request gives the time (`now_in_seconds`), so that local deletion times and
what is left of a TTL are known. Lists are changed by index and value only after asking the twin what is in them.
"""

import random

from twin import Cell, Twin
from values import Collection, Tuple, any_multi_cell, any_type

KEYSPACE = "generated_{seed}"
COMPRESSIONS = [
    "{'class': 'LZ4Compressor'}",
    "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4, 'min_compress_ratio': 1.2}",
    "{'class': 'ZstdCompressor', 'chunk_length_in_kb': 64}",
    "{'class': 'SnappyCompressor', 'chunk_length_in_kb': 8}",
    "{'class': 'DeflateCompressor'}",
    "{'enabled': 'false'}",
]
DAY = 86400
TABLES = 3
WRITES_A_LAYER = 120


class Column:
    def __init__(self, name, kind):
        self.name, self.type = name, kind


class Table:
    def __init__(self, chance, keyspace, number, udts):
        self.keyspace, self.name = keyspace, f"{keyspace}.t{number}"
        key = lambda prefix, count: [Column(f"{prefix}{at}", any_type(chance, udts, chance.choice([0, 0, 1]), ordered=True)) for at in range(count)]
        self.partition = key("k", chance.choice([1, 1, 2, 3]))
        self.clustering = key("c", chance.choice([0, 1, 2, 3]))
        self.descending = [chance.random() < 0.5 for _ in self.clustering]
        other = lambda: any_multi_cell(chance, udts) if chance.random() < 0.35 else any_type(chance, udts)
        self.statics = [Column(f"s{at}", other()) for at in range(chance.choice([0, 0, 1, 2]) if self.clustering else 0)]
        self.regulars = [Column(f"v{at}", other()) for at in range(chance.choice([0, 1, 2, 3, 5, 9]))]
        self.gc_grace = chance.choice([0, 10 * DAY])
        self.options = [
            f"compression = {chance.choice(COMPRESSIONS)}",
            f"gc_grace_seconds = {self.gc_grace}",
            f"bloom_filter_fp_chance = {chance.choice([0.01, 0.1, 1.0])}",
        ]
        # few, so that writes meet
        self.keys = list({tuple(column.type.value(chance) for column in self.partition) for _ in range(5)})
        self.keys = [key for key in self.keys if len(key) > 1 or key[0]] or [tuple(nonempty(column, chance) for column in self.partition)]
        pool = [[column.type.value(chance) for _ in range(4)] for column in self.clustering]
        self.rows = list({tuple(chance.choice(values) for values in pool) for _ in range(14)})

    def create(self):
        columns = [f"{column.name} {column.type.name}" for column in (*self.partition, *self.clustering, *self.regulars)]
        columns += [f"{column.name} {column.type.name} static" for column in self.statics]
        key = f"({', '.join(column.name for column in self.partition)})"
        names = ", ".join([key, *(column.name for column in self.clustering)])
        options = list(self.options)
        if self.clustering:
            order = (f"{column.name} {'DESC' if desc else 'ASC'}" for column, desc in zip(self.clustering, self.descending))
            options.insert(0, f"CLUSTERING ORDER BY ({', '.join(order)})")
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({names})) WITH {' AND '.join(options)}"

    def query(self):
        """All columns, then write time and TTL of each that has one cell."""
        columns = [*self.partition, *self.clustering, *self.statics, *self.regulars]
        simple = [column.name for column in (*self.statics, *self.regulars) if not column.type.multi_cell]
        times = [f"{function}({name})" for name in simple for function in ("writetime", "ttl")]
        return f"SELECT {', '.join([column.name for column in columns] + times)} FROM {self.name}"

    def order(self, clustering):
        """The place of a row in its partition."""
        return [Place(column.type.order(value), desc) for column, desc, value in zip(self.clustering, self.descending, clustering)]


def nonempty(column, chance):
    while not (value := column.type.value(chance)):
        pass
    return value


class Place:
    """A key for sorting that may go downwards."""

    def __init__(self, key, descending):
        self.key, self.descending = key, descending

    def __lt__(self, other):
        return other.key < self.key if self.descending else self.key < other.key

    def __eq__(self, other):
        return self.key == other.key


class Writer:
    """Writes at random into the tables of a seed: `execute(statement, values)` does a statement."""

    def __init__(self, seed, wall_clock):
        self.chance = chance = random.Random(seed)
        self.keyspace = KEYSPACE.format(seed=seed)
        self.udts = []
        for number in range(2):
            self.udts.append(Tuple([any_type(chance, self.udts, 1) for _ in range(chance.choice([1, 3]))], f"u{number}"))
        self.tables = [Table(chance, self.keyspace, number, self.udts) for number in range(TABLES)]
        self.twins = [Twin(table) for table in self.tables]
        self.now = wall_clock - chance.choice([0, 20 * DAY])
        self.is_old = self.now < wall_clock
        self.used, self.paths, self.layers = set(), 0, 0

    def schema(self):
        yield f"CREATE KEYSPACE {self.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        for udt in self.udts:
            fields = ", ".join(f"f{at} {kind.name}" for at, kind in enumerate(udt.fields))
            yield f"CREATE TYPE {self.keyspace}.{udt.udt} ({fields})"
        yield from (table.create() for table in self.tables)

    def layer(self, execute):
        self.layers += 1
        for _ in range(WRITES_A_LAYER):
            twin = self.chance.choice(self.twins)
            self.write(twin, execute)

    def timestamp(self, table, extremes=True):
        """One that was not used before. Where a compaction may have purged tombstones, it is greater than those of all layers before."""
        chance = self.chance
        purges = self.is_old or table.gc_grace == 0
        while True:
            found = 1_700_000_000_000_000 + 10 * chance.randrange(10**6) + purges * self.layers * 10**8
            if extremes and not purges and chance.random() < 0.03:
                found = chance.choice([-(2**63) + 1000, -(10**6), 0, 10**6]) + 10 * chance.randrange(1000)
            if extremes and not purges and chance.random() < 0.005:
                found = 2**63 - 1 - 10 * chance.randrange(1000)
            if found not in self.used:
                self.used.add(found)
                return found

    def write(self, twin, execute):
        chance, table = self.chance, twin.table
        kinds = ["insert"] * 5 + ["update"] * 6 * bool(table.regulars or table.statics) + ["row", "partition", "column"]
        kinds += ["range"] * 3 * bool(table.clustering)
        key = chance.choice(table.keys)
        getattr(self, "do_" + chance.choice(kinds))(twin, key, chance.choice(table.rows), execute)

    def using(self, table, with_ttl=True):
        """Timestamp and TTL, the text that gives them, and how a cell of it is made."""
        timestamp = self.timestamp(table)
        ttl = self.chance.choice([None, None, None, 1, 40 * DAY, 10**7]) if with_ttl else None
        text = "USING TIMESTAMP ?" + (" AND TTL ?" if ttl else "")
        values = [timestamp.to_bytes(8, "big", signed=True)] + ([ttl.to_bytes(4, "big")] if ttl else [])
        cell = lambda value: Cell(timestamp, value, ttl, self.now + ttl if ttl else None) if value is not None else Cell(timestamp, None)
        return timestamp, text, values, cell

    def do_insert(self, twin, key, clustering, execute):
        chance, table = self.chance, twin.table
        timestamp, text, using, cell = self.using(table)
        columns = [column for column in (*table.statics, *table.regulars) if chance.random() < 0.7]
        values = [None if chance.random() < 0.1 else column.type.value(chance) for column in columns]
        names = [column.name for column in (*table.partition, *table.clustering, *columns)]
        marks = ", ".join("?" for _ in names)
        execute(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) {text}", [*key, *clustering, *values, *using])
        row = twin.row(key, clustering)
        live = cell(b"")
        row.liveness = live if row.liveness is None or live.timestamp > row.liveness.timestamp else row.liveness
        for column, value in zip(columns, values):
            target = twin.partition(key).static if column in table.statics else row
            self.assign(target, column, value, timestamp, cell)

    def assign(self, row, column, value, timestamp, cell):
        """What `column = value` leaves."""
        if not column.type.multi_cell:
            row.put(column.name, cell(value))
            return
        row.overwrite(column.name, timestamp - 1)
        if value is None:
            return
        for path, part in self.cells(column.type, value):
            row.put_part(column.name, path, cell(part))

    def cells(self, kind, value):
        from values import unpack

        if not isinstance(kind, Collection):
            return [(index, part) for index, part in enumerate(unpack(value)) if part is not None]
        parts = unpack(value[4:])
        if kind.kind == "list":
            return [(self.next_path(), part) for part in parts]
        if kind.kind == "set":
            return [(part, b"") for part in parts]
        return list(zip(parts[::2], parts[1::2]))

    def next_path(self):
        self.paths += 1
        return self.paths

    def do_update(self, twin, key, clustering, execute):
        chance, table = self.chance, twin.table
        column = chance.choice([*table.regulars, *table.statics])
        is_static = column in table.statics
        timestamp, text, using, cell = self.using(table)
        row = twin.partition(key).static if is_static else twin.row(key, clustering)
        change = self.change_of(twin, key, None if is_static else clustering, column)
        assignment, values, apply = change
        where = [f"{part.name} = ?" for part in (*table.partition, *(() if is_static else table.clustering))]
        bound = [*using, *values, *key, *(() if is_static else clustering)]
        execute(f"UPDATE {table.name} {text} SET {assignment} WHERE {' AND '.join(where)}", bound)
        apply(row, timestamp, cell)

    def change_of(self, twin, key, clustering, column):
        """A random assignment: its text, its values, and what it does to the twin's row."""
        chance, kind, name = self.chance, column.type, column.name
        whole = None if chance.random() < 0.1 else kind.value(chance)
        assign = (f"{name} = ?", [whole], lambda row, timestamp, cell: self.assign(row, column, whole, timestamp, cell))
        if not kind.multi_cell or chance.random() < 0.3:
            return assign
        put = lambda parts: lambda row, timestamp, cell: [row.put_part(name, path, cell(part)) for path, part in parts]
        if not isinstance(kind, Collection):
            at = chance.randrange(len(kind.fields))
            value = None if chance.random() < 0.2 else kind.fields[at].value(chance)
            return f"{name}.f{at} = ?", [value], put([(at, value)])
        elements = kind.elements(chance, 1)
        if kind.kind == "set":
            if chance.random() < 0.5:
                return f"{name} = {name} + ?", [kind.join(elements)], put([(element, b"") for element in elements])
            return f"{name} = {name} - ?", [kind.join(elements)], put([(element, None) for element in elements])
        if kind.kind == "map":
            if chance.random() < 0.4:
                path, value = elements[0]
                value = None if chance.random() < 0.3 else value
                return f"{name}[?] = ?", [path, value], put([(path, value)])
            if chance.random() < 0.5:
                return f"{name} = {name} + ?", [kind.join(elements)], put(elements)
            keys = Collection("set", kind.inner[:1], True).join([path for path, _ in elements])
            return f"{name} = {name} - ?", [keys], put([(path, None) for path, _ in elements])
        return self.list_change(twin, key, clustering, column, elements, put)

    def list_change(self, twin, key, clustering, column, elements, put):
        chance, name = self.chance, column.name
        paths = twin.live_paths(key, clustering, column, self.now)
        if paths and chance.random() < 0.4:
            at = chance.randrange(len(paths))
            value = None if chance.random() < 0.3 else elements[0]
            return f"{name}[?] = ?", [at.to_bytes(4, "big"), value], put([(paths[at], value)])
        if chance.random() < 0.5:
            return f"{name} = {name} + ?", [column.type.join(elements)], put([(self.next_path(), element) for element in elements])
        # the later, the further in front
        fresh = sorted(-self.next_path() for _ in elements)
        return f"{name} = ? + {name}", [column.type.join(elements)], put(list(zip(fresh, elements)))

    def do_row(self, twin, key, clustering, execute):
        table = twin.table
        if not table.clustering:
            return self.do_partition(twin, key, clustering, execute)
        timestamp, text, using, _ = self.using(table, with_ttl=False)
        where = " AND ".join(f"{part.name} = ?" for part in (*table.partition, *table.clustering))
        execute(f"DELETE FROM {table.name} {text} WHERE {where}", [*using, *key, *clustering])
        twin.row(key, clustering).delete(timestamp)

    def do_partition(self, twin, key, clustering, execute):
        # Cassandra cannot read back a partition deletion with a negative timestamp
        timestamp = self.timestamp(twin.table, extremes=False)
        where = " AND ".join(f"{part.name} = ?" for part in twin.table.partition)
        execute(f"DELETE FROM {twin.table.name} USING TIMESTAMP ? WHERE {where}", [timestamp.to_bytes(8, "big", signed=True), *key])
        partition = twin.partition(key)
        partition.deletion = timestamp if partition.deletion is None else max(partition.deletion, timestamp)

    def do_column(self, twin, key, clustering, execute):
        chance, table = self.chance, twin.table
        columns = [*table.regulars, *table.statics]
        if not columns:
            return
        column = chance.choice(columns)
        is_static = column in table.statics
        timestamp, text, using, cell = self.using(table, with_ttl=False)
        where = " AND ".join(f"{part.name} = ?" for part in (*table.partition, *(() if is_static else table.clustering)))
        row = twin.partition(key).static if is_static else twin.row(key, clustering)
        what, before = column.name, []
        kind = column.type
        if isinstance(kind, Collection) and kind.multi_cell and kind.kind != "list" and chance.random() < 0.6:
            [element, *_] = kind.elements(chance, 1)
            path = element if kind.kind == "set" else element[0]
            what, before = f"{column.name}[?]", [path]
            row.put_part(column.name, path, cell(None))
        elif kind.multi_cell:
            row.overwrite(column.name, timestamp)
        else:
            row.put(column.name, cell(None))
        execute(f"DELETE {what} FROM {table.name} {text} WHERE {where}", [*before, *using, *key, *(() if is_static else clustering)])

    def do_range(self, twin, key, clustering, execute):
        """All rows of a prefix, or a slice of the column behind it."""
        chance, table = self.chance, twin.table
        width = chance.randrange(len(table.clustering))
        prefix, column = clustering[:width], table.clustering[width]
        order = column.type.order
        tests = []
        if chance.random() < 0.8:
            tests.append((chance.choice([">", ">="]), chance.choice(table.rows)[width]))
        if chance.random() < 0.6:
            tests.append((chance.choice(["<", "<="]), chance.choice(table.rows)[width]))
        if not tests and not prefix:
            return
        timestamp, text, using, _ = self.using(table, with_ttl=False)
        where = [f"{part.name} = ?" for part in (*table.partition, *table.clustering[:width])] + [f"{column.name} {sign} ?" for sign, _ in tests]
        bound = [*using, *key, *prefix, *(value for _, value in tests)]
        execute(f"DELETE FROM {table.name} {text} WHERE {' AND '.join(where)}", bound)
        holds = {
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
        }

        def covers(row):
            return row[:width] == prefix and all(holds[sign](order(row[width]), order(value)) for sign, value in tests)

        twin.partition(key).ranges.append((covers, timestamp))
