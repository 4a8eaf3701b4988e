"""SELECT in all its forms."""

import arithmetic
import functions
import indexes
import values
import where
from writes import part

COUNTS = ["count(*)", "COUNT(1)"]
TO_BLOB = {"ascii", "bigint", "int", "text", "uuid", "boolean", "double", "timestamp"}


def selector(w, table):
    """An expression and its alias, sometimes."""
    column = w.pick(table.columns)
    kind = w.rng.random()
    called = functions.call(w, table.columns, aggregates=True) if kind < 0.15 else None
    if called:
        text = called
    elif 0.15 < kind < 0.27:
        text = arithmetic.expression(w, table.columns)
    elif kind < 0.32:
        text = arithmetic.native(w, column)
    else:
        text = shown(w, table, column)
    if w.chance(0.1):
        text += f" AS {w.pick(['a', 'b', 'k0', chr(34) + 'Alias' + chr(34)])}"
    return text


def shown(w, table, column):
    name, ty = column.name, column.type
    kind = w.rng.random()
    if kind < 0.5:
        return name
    if kind < 0.6:
        return w.pick([f"writetime({name})", f"ttl({name})", f"maxwritetime({name})"]) if column.kind in ("static", "regular") or w.chance(0.1) else name
    if kind < 0.68 and ty.name in ("map", "set", "list"):
        at = w.value(ty.inner[0] if ty.name != "list" else values.scalar("int"), part(w, ty, column.pool) if ty.name != "list" else w.pick([0, 1]))
        if ty.name == "list":
            return f"{name}[{at}]"
        if w.chance(0.4):
            return f"{name}[{at}..{w.value(ty.inner[0], part(w, ty, column.pool)) if w.chance(0.8) else ''}]"
        return f"{name}[{at}]"
    if kind < 0.68 and ty.name == "udt":
        return f"{name}.{w.pick(ty.fields)}"
    if kind < 0.74:
        return f"CAST({name} AS {w.pick(['text', 'int', 'bigint', 'double', 'ascii', 'varint', 'decimal', 'date', 'timestamp'])})"
    if kind < 0.78:
        return f"token({', '.join(c.name for c in table.of('partition'))})"
    if kind < 0.82:
        return f"toJson({name})"
    if kind < 0.84 and ty.name in TO_BLOB:
        return f"{ty.name}AsBlob({name})"
    if kind < 0.87:
        return w.pick([f"min({name})", f"max({name})", f"sum({name})", f"avg({name})", f"count({name})"])
    return name


def clause(w, table):
    kind = w.rng.random()
    if kind < 0.4:
        return "*"
    if kind < 0.46:
        return w.pick(COUNTS)
    if kind < 0.54:
        names = [w.pick(table.columns).name for _ in range(w.pick([1, 2]))]
        return ", ".join(f"{w.pick(['min', 'max', 'count', 'sum', 'avg'])}({name})" for name in names)
    if kind < 0.58 and table.of("static"):
        return ", ".join(column.name for column in table.of("partition", "static"))
    if kind < 0.62:
        return "DISTINCT " + ", ".join(column.name for column in table.of("partition", "static" if w.chance(0.6) else "partition"))
    if kind < 0.66:
        return "JSON " + w.pick(["*", selector(w, table)])
    return ", ".join(selector(w, table) for _ in range(w.pick([1, 2, 3])))


def select(w):
    table = w.pick(w.schema.views) if w.schema.views and w.chance(0.4) else w.pick(w.schema.tables)
    near = indexes.nearest(w, table) if w.chance(0.15) else None
    if near:
        return near
    parts = []
    found = indexes.relations(w, table) if w.chance(0.4) else None
    by_key = w.chance(0.2 if found else 0.6)
    if by_key:
        parts += where.partition_key(w, table, False)
    if by_key or w.chance(0.15):
        parts += where.clustering(w, table, False)
    parts += found or []
    filtering = w.chance(0.12 if found else 0.22)
    if filtering:
        parts += where.filters(w, table)
    text = f"SELECT {clause(w, table)} FROM {table.name}{where.joined(w, parts)}"
    if w.chance(0.1):
        text += group_by(w, table)
    if w.chance(0.15):
        text += order_by(w, table)
    if w.chance(0.12):
        text += f" PER PARTITION LIMIT {w.number_of('int', [1, 1, 2, 3] + ([0, -1] if w.wrong else []))}"
    if w.chance(0.2):
        text += f" LIMIT {w.number_of('int', [1, 2, 3, 5, 2**31 - 1] + ([0, -1] if w.wrong else []))}"
    if w.chance(0.93 if filtering or not by_key and not found else 0.15):
        text += " ALLOW FILTERING"
    return text


def group_by(w, table):
    columns = table.of("partition", "clustering")
    count = w.rng.randint(1, len(columns))
    if w.mistake(0.3):
        return f" GROUP BY {w.pick(table.columns).name}"
    return f" GROUP BY {', '.join(column.name for column in columns[:count])}"


def order_by(w, table):
    columns = table.of("clustering")
    if not columns or w.mistake(0.2):
        columns = table.columns
    count = w.rng.randint(1, len(columns))
    flip = w.chance(0.5)
    turn = lambda column: ("ASC" if column.descending else "DESC") if flip else ("DESC" if column.descending else "ASC")
    return " ORDER BY " + ", ".join(f"{column.name} {turn(column) if not w.mistake(0.3) else 'ASC'}" for column in columns[:count])
