"""WHERE: relations of every kind, for selections and changes."""

import values
from values import Type, scalar

SLICES = ["<", "<=", ">", ">="]


def partition_key(w, table, exact):
    """Relations on the partition key; with `exact` as changes need them."""
    parts = []
    columns = table.of("partition")
    if not exact and w.chance(0.12):
        return token(w, columns)
    for column in columns:
        if w.mistake(0.1):
            continue
        if w.chance(0.15):
            parts.append(in_list(w, column))
        elif w.mistake(0.1):
            parts.append(f"{column.name} {w.pick(SLICES)} {w.key(column)}")
        else:
            parts.append(f"{column.name} = {w.key(column)}")
    return parts


def token(w, columns):
    names = ", ".join(column.name for column in columns)
    if w.mistake(0.2):
        names = w.pick([column.name for column in columns])
    parts = []
    operators = w.pick([[">"], [">="], ["<"], ["<="], [">", "<="], [">=", "<"], ["="]])
    for operator in operators:
        if w.chance(0.5):
            right = f"token({', '.join(w.key(column) for column in columns)})"
        else:
            right = w.number_of("bigint", [0, -(2**63), 2**63 - 1, 2**62, -(2**62)])
        parts.append(f"token({names}) {operator} {right}")
    return parts


def in_list(w, column):
    count = w.pick([0, 1, 2, 2, 3])
    if w.marked and w.chance(0.2):
        given = [w.pick(column.pool) for _ in range(count)] if column.pool else []
        return f"{column.name} IN {w.value(Type('list', (column.type,), True), given)}"
    return f"{column.name} IN ({', '.join(w.key(column) for _ in range(count))})"


def clustering(w, table, exact):
    """Relations on leading clustering columns; with `exact` on all of them, by = or IN."""
    columns = table.of("clustering")
    parts = []
    at = 0
    while at < len(columns):
        column = columns[at]
        if w.mistake(0.08):
            at += 1
            continue
        if not exact and w.chance(0.2):
            break
        if len(columns) - at > 1 and w.chance(0.2):
            width = w.rng.randint(1, len(columns) - at)
            ended = multi(w, columns[at : at + width], parts, exact)
            at += width
            if ended:
                break
            continue
        if not exact and w.chance(0.3):
            slices(w, column, parts)
            break
        parts.append(in_list(w, column) if w.chance(0.15) else f"{column.name} = {w.key(column)}")
        at += 1
    return parts


def slices(w, column, parts):
    if column.type.name == "inet" and any(index.attached and index.column is column for index in w.schema.indexes):
        parts.append(f"{column.name} = {w.key(column)}")
        return
    for operator in w.pick([["<"], ["<="], [">"], [">="], [">", "<"], [">=", "<="], [">", "<="]]):
        parts.append(f"{column.name} {operator} {w.key(column)}")


def multi(w, columns, parts, exact):
    """A relation on several columns at once; whether it is a range."""
    names = f"({', '.join(column.name for column in columns)})"
    row = lambda size: f"({', '.join(w.key(column) for column in columns[:size])})"
    if exact or w.chance(0.4):
        if w.chance(0.5):
            parts.append(f"{names} = {row(len(columns))}")
        else:
            parts.append(f"{names} IN ({', '.join(row(len(columns)) for _ in range(w.pick([0, 1, 2, 3])))})")
        return False
    for operator in w.pick([["<"], ["<="], [">"], [">="], [">", "<"], [">=", "<="]]):
        width = w.rng.randint(1, len(columns)) if w.chance(0.4) else len(columns)
        some = f"({', '.join(column.name for column in columns[:width])})"
        parts.append(f"{some} {operator} {row(width)}")
    return True


def filters(w, table):
    """Relations on any column, which need ALLOW FILTERING."""
    parts = []
    for _ in range(w.pick([1, 1, 2])):
        column = w.pick(table.columns)
        ty = column.type
        kind = w.rng.random()
        if any(index.attached and index.table is table for index in w.schema.indexes) and (ty.name == "inet" or ty.inner and not ty.multi):
            parts.append(f"{column.name} = {w.of_pool(column, 0.02)}")
            continue
        if ty.name in ("list", "set", "map") and kind < 0.6:
            parts.append(contains(w, column))
        elif kind < 0.05:
            parts.append(f"{column.name} {w.pick(['LIKE', '!=', 'IS NOT', 'CONTAINS', 'CONTAINS KEY', 'NOT IN', 'BETWEEN'])} {w.of_pool(column)}")
        elif kind < 0.15:
            parts.append(in_list(w, column))
        elif kind < 0.5:
            parts.append(f"{column.name} {w.pick(SLICES)} {w.of_pool(column, 0.02)}")
        else:
            parts.append(f"{column.name} = {w.of_pool(column, 0.02)}")
    return parts


def contains(w, column):
    ty = column.type
    drawn = w.pick(column.pool) if column.pool else None
    if ty.name == "map":
        key, value = w.pick(drawn) if drawn else (values.random_value(w.rng, ty.inner[0]), values.random_value(w.rng, ty.inner[1]))
        kind = w.rng.random()
        if kind < 0.4:
            return f"{column.name} CONTAINS KEY {w.value(ty.inner[0], key)}"
        if kind < 0.7:
            return f"{column.name} CONTAINS {w.value(ty.inner[1], value)}"
        return f"{column.name}[{w.value(ty.inner[0], key)}] = {w.value(ty.inner[1], value)}"
    item = w.pick(drawn) if drawn else values.random_value(w.rng, ty.inner[0])
    return f"{column.name} {'CONTAINS' if w.chance(0.95) else 'CONTAINS KEY'} {w.value(ty.inner[0], item)}"


def joined(w, parts):
    parts = list(parts)
    if w.chance(0.3):
        w.rng.shuffle(parts)
    if w.mistake(0.1) and parts:
        parts.append(w.pick(parts))
    return f" WHERE {' AND '.join(parts)}" if parts else ""


__all__ = ["clustering", "filters", "joined", "partition_key", "scalar"]
