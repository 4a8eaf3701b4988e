"""A naive twin of a table: every cell that was ever written and every deletion, in plain dictionaries; what is live is worked out when
asked. It has no files, no merging and no order of time: only that the greater timestamp wins. Timestamps are never equal, so that ties do
not come into it.
"""

from values import Collection, pack, packed


class Cell:
    def __init__(self, timestamp, value, ttl=None, expires=None):
        self.timestamp, self.value, self.ttl, self.expires = timestamp, value, ttl, expires

    def is_live(self, now):
        return self.value is not None and (self.expires is None or now < self.expires)


def newer(old, new):
    return new if old is None or new.timestamp > old.timestamp else old


class Row:
    def __init__(self):
        self.liveness = None
        self.deletion = None
        self.cells = {}  # name -> Cell, or name -> {path: Cell}
        self.overwritten = {}  # name of a column of many cells -> timestamp of its deletion

    def put(self, name, cell):
        self.cells[name] = newer(self.cells.get(name), cell)

    def put_part(self, name, path, cell):
        parts = self.cells.setdefault(name, {})
        parts[path] = newer(parts.get(path), cell)

    def overwrite(self, name, timestamp):
        self.overwritten[name] = max(self.overwritten.get(name, timestamp), timestamp)

    def delete(self, timestamp):
        self.deletion = timestamp if self.deletion is None else max(self.deletion, timestamp)


class Partition:
    def __init__(self):
        self.deletion = None
        self.static = Row()
        self.rows = {}  # clustering -> Row
        self.ranges = []  # (covers, timestamp)


class Twin:
    def __init__(self, table):
        self.table = table
        self.partitions = {}

    def partition(self, key):
        return self.partitions.setdefault(key, Partition())

    def row(self, key, clustering):
        return self.partition(key).rows.setdefault(clustering, Row())

    def deletion_of(self, key, clustering):
        """The greatest timestamp that deletes the row, or the static one (clustering None)."""
        partition = self.partition(key)
        found = [partition.deletion]
        if clustering is not None:
            found += [partition.rows[clustering].deletion] if clustering in partition.rows else []
            found += [timestamp for covers, timestamp in partition.ranges if covers(clustering)]
        return max((timestamp for timestamp in found if timestamp is not None), default=None)

    def value(self, row, column, deletion, now):
        """A column's bytes, and the cell of one that has one."""
        survives = lambda cell, until: cell is not None and (until is None or cell.timestamp > until) and cell.is_live(now)
        if not column.type.multi_cell:
            cell = row.cells.get(column.name)
            return (cell.value, cell) if survives(cell, deletion) else (None, None)
        until = max((time for time in (deletion, row.overwritten.get(column.name)) if time is not None), default=None)
        parts = {path: cell.value for path, cell in row.cells.get(column.name, {}).items() if survives(cell, until)}
        return self.join(column.type, parts), None

    def live_paths(self, key, clustering, column, now):
        """The paths of a list's live elements, in order."""
        row = self.partition(key).static if clustering is None else self.partition(key).rows.get(clustering, Row())
        deletion = self.deletion_of(key, clustering)
        until = max((time for time in (deletion, row.overwritten.get(column.name)) if time is not None), default=None)
        cells = row.cells.get(column.name, {}).items()
        return sorted(path for path, cell in cells if (until is None or cell.timestamp > until) and cell.is_live(now))

    def join(self, kind, parts):
        if not parts:
            return None
        if not isinstance(kind, Collection):
            return pack([parts.get(index) for index in range(len(kind.fields))])
        if kind.kind == "list":
            return packed([parts[path] for path in sorted(parts)])
        paths = sorted(parts, key=kind.inner[0].order)
        return kind.join(paths if kind.kind == "set" else [(path, parts[path]) for path in paths])

    def values_of(self, row, columns, deletion, now):
        """The values of columns, then write time and time to live of those with one cell, as a query gives them."""
        found = [self.value(row, column, deletion, now) for column in columns]
        times = []
        for column, (_, cell) in zip(columns, found):
            if not column.type.multi_cell:
                times.append(None if cell is None else cell.timestamp.to_bytes(8, "big", signed=True))
                left = None if cell is None or cell.expires is None else cell.expires - now
                times.append(None if left is None else left.to_bytes(4, "big"))
        return [value for value, _ in found], times

    def rows(self, now):
        """Partition key -> the rows in order, as the table's `query` gives them."""
        found = {}
        table = self.table
        for key, partition in self.partitions.items():
            statics, static_times = self.values_of(partition.static, table.statics, self.deletion_of(key, None), now)
            rows = []
            for clustering in sorted(partition.rows, key=table.order):
                row = partition.rows[clustering]
                deletion = self.deletion_of(key, clustering)
                regulars, times = self.values_of(row, table.regulars, deletion, now)
                liveness = row.liveness
                lives = liveness is not None and (deletion is None or liveness.timestamp > deletion) and liveness.is_live(now)
                if lives or any(value is not None for value in regulars):
                    rows.append((*key, *clustering, *statics, *regulars, *static_times, *times))
            if not rows and any(value is not None for value in statics):
                nothing = [None] * (len(table.clustering) + len(table.regulars))
                times = [None] * (2 * sum(not column.type.multi_cell for column in table.regulars))
                rows.append((*key, *nothing[: len(table.clustering)], *statics, *nothing[len(table.clustering) :], *static_times, *times))
            if rows:
                found[key] = rows
        return found
