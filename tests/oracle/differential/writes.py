"""INSERT, UPDATE, DELETE, BATCH, TRUNCATE."""

import json

import values
import where
from values import Type, scalar


def insert(w, table):
    columns = table.of("partition", "clustering")
    rest = table.of("static", "regular")
    if table.of("static") and w.chance(0.1):
        columns, rest = table.of("partition"), table.of("static")
    given = list(columns) + [column for column in rest if w.chance(0.6)]
    if w.mistake(0.3):
        given = [column for column in given if not w.chance(0.2)]
    if w.chance(0.3):
        w.rng.shuffle(given)
    if w.chance(0.12) and not (table.compact and not (table.of("clustering") and table.of("regular"))):
        return insert_json(w, table, given)
    null = lambda column: 0.01 if column.kind in ("partition", "clustering") else 0.12
    names = ", ".join(column.name for column in given)
    terms = ", ".join(w.of_pool(column, null(column)) for column in given)
    if w.mistake(0.1):
        names += ", nothing"
    if w.mistake(0.1):
        terms += ", 1"
    exists = " IF NOT EXISTS" if w.conditional(table) else ""
    return f"INSERT INTO {table.name} ({names}) VALUES ({terms}){exists}{w.using(table, soon=False)}"


def insert_json(w, table, given):
    content = {}
    for column in given:
        name = column.name if column.name.startswith('"') else column.name
        value = None if w.chance(0.1) else w.pick(column.pool) if column.pool else None
        content[name] = values.as_json(column.type, value)
        if w.mistake(0.1):
            content[name] = w.pick([1, "x", True, [1], {"a": 1}, None, 1.5, "1"])
    text = json.dumps(content, ensure_ascii=False)
    if w.mistake(0.1):
        text = text[:-1]
    default = w.pick(["", "", " DEFAULT NULL", " DEFAULT UNSET"])
    exists = " IF NOT EXISTS" if w.conditional(table) else ""
    return f"INSERT INTO {table.name} JSON {w.value(scalar('text'), text.replace(chr(39), chr(39) * 2))}{default}{exists}{w.using(table, soon=False)}"


def part(w, ty, pool, at=0):
    """An element of a collection: one that a value of the pool has, or any."""
    drawn = [item for value in pool if value for item in value]
    if drawn and w.chance(0.7):
        item = w.pick(drawn)
        return item[at] if ty.name == "map" else item
    return values.random_value(w.rng, ty.inner[at], 0)


def assignment(w, table, column):
    name, ty = column.name, column.type
    if ty.name == "counter":
        amount = w.number_of("bigint", [1, 2, 5, -3, 10])
        kind = w.rng.random()
        if kind < 0.5:
            return f"{name} = {name} + {amount}"
        if kind < 0.7:
            return f"{name} {w.pick(['+=', '-='])} {amount}"
        return f"{name} = {name} - {amount}" if kind < 0.97 else f"{name} = {amount}"
    if ty.name == "udt" and w.chance(0.4):
        at = w.rng.randrange(len(ty.fields))
        value = values.random_value(w.rng, ty.inner[at], 0.1)
        return f"{name}.{ty.fields[at]} = {w.value(ty.inner[at], value)}"
    if ty.name in ("list", "set", "map") and w.chance(0.6):
        return collection_change(w, column)
    return f"{name} = {w.of_pool(column, 0.12)}"


def collection_change(w, column):
    name, ty = column.name, column.type
    change = w.of_pool(column, 0.03)
    if ty.name == "list":
        kind = w.rng.random()
        if kind < 0.25:
            return f"{name}[{w.number_of('int', [0, 0, 1, 2, 7] + ([-1] if w.wrong else []))}] = {w.value(ty.inner[0], part(w, ty, column.pool) if w.chance(0.9) else None)}"
        if kind < 0.4:
            return f"{name} = {change} + {name}"
        return w.pick([f"{name} = {name} + {change}", f"{name} += {change}", f"{name} = {name} - {change}", f"{name} -= {change}"])
    if ty.name == "set":
        return w.pick([f"{name} = {name} + {change}", f"{name} += {change}", f"{name} = {name} - {change}", f"{name} -= {change}"])
    kind = w.rng.random()
    if kind < 0.35:
        value = part(w, ty, column.pool, 1) if w.chance(0.85) else None
        return f"{name}[{w.value(ty.inner[0], part(w, ty, column.pool))}] = {w.value(ty.inner[1], value)}"
    if kind < 0.65:
        keys = [part(w, ty, column.pool) for _ in range(w.pick([0, 1, 2]))]
        gone = w.value(Type("set", (ty.inner[0],), True), values.distinct(ty.inner[0], keys))
        return w.pick([f"{name} = {name} - {gone}", f"{name} -= {gone}"])
    return w.pick([f"{name} = {name} + {change}", f"{name} += {change}"])


def condition(w, table):
    columns = table.of("static", "regular")
    if not columns or w.chance(0.3):
        return " IF EXISTS"
    parts = []
    for _ in range(w.pick([1, 1, 2])):
        column = w.pick(columns if not w.mistake(0.1) else table.columns)
        ty = column.type
        operator = w.pick(["=", "=", "!=", "<", "<=", ">", ">="])
        if ty.name in ("list", "map") and w.chance(0.4):
            key = w.number_of("int", [0, 1, 5]) if ty.name == "list" else w.value(ty.inner[0], part(w, ty, column.pool))
            inner = ty.inner[-1]
            value = part(w, ty, column.pool, len(ty.inner) - 1) if w.chance(0.8) else None
            parts.append(f"{column.name}[{key}] {operator} {w.value(inner, value)}")
        elif ty.name == "udt" and w.chance(0.4):
            at = w.rng.randrange(len(ty.fields))
            parts.append(f"{column.name}.{ty.fields[at]} {operator} {w.value(ty.inner[at], values.random_value(w.rng, ty.inner[at], 0.1))}")
        elif w.chance(0.15):
            parts.append(where.in_list(w, column))
        elif ty.name in ("list", "set", "map") and w.chance(0.2):
            parts.append(where.contains(w, column))
        else:
            parts.append(f"{column.name} {operator} {w.of_pool(column, 0.15 if operator in ('=', '!=') else 0)}")
    return f" IF {' AND '.join(parts)}"


def exact(w, table, statics_only):
    parts = where.partition_key(w, table, True)
    if not statics_only or w.mistake(0.2):
        parts += where.clustering(w, table, True)
    if w.mistake(0.1):
        parts += where.filters(w, table)
    return where.joined(w, parts)


def update(w, table):
    columns = table.of("static", "regular")
    if not columns:
        return insert(w, table)
    chosen = w.rng.sample(columns, w.rng.randint(1, min(3, len(columns))))
    if w.chance(0.1):
        chosen = [column for column in columns if column.kind == "static"] or chosen
    if w.mistake(0.1):
        chosen.append(w.pick(table.columns))
    using = w.using(table)
    changes = ", ".join(assignment(w, table, column) for column in chosen)
    only = all(column.kind == "static" for column in chosen)
    tail = condition(w, table) if w.conditional(table) else ""
    return f"UPDATE {table.name}{using} SET {changes}{exact(w, table, only)}{tail}"


def delete(w, table):
    columns = table.of("static", "regular")
    using = w.using(table, ttl=w.mistake(0.1))
    if columns and w.chance(0.45):
        chosen = w.rng.sample(columns, w.rng.randint(1, min(2, len(columns))))
        what = " " + ", ".join(deleted(w, column) for column in chosen)
        parts = exact(w, table, all(column.kind == "static" for column in chosen))
    else:
        what = ""
        parts = where.partition_key(w, table, True)
        if w.chance(0.93):
            parts += where.clustering(w, table, w.chance(0.4))
        parts = where.joined(w, parts)
    tail = condition(w, table) if w.conditional(table) else ""
    return f"DELETE{what} FROM {table.name}{using}{parts}{tail}"


def deleted(w, column):
    ty = column.type
    if ty.name == "list" and w.chance(0.5):
        return f"{column.name}[{w.number_of('int', [0, 0, 1, 5])}]"
    if ty.name in ("map", "set") and w.chance(0.5):
        return f"{column.name}[{w.value(ty.inner[0], part(w, ty, column.pool))}]"
    if ty.name == "udt" and w.chance(0.5):
        return f"{column.name}.{w.pick(ty.fields)}"
    return column.name


def one(w, table):
    if table.counter:
        return w.pick([update, update, update, update, update, insert])(w, table)
    return w.pick([insert, insert, insert, update, update, update, delete])(w, table)


def batch(w):
    tables = w.schema.tables
    table = w.pick(tables)
    kind = w.pick(["", "", "UNLOGGED "]) if not table.counter else "COUNTER "
    if w.mistake(0.3):
        kind = w.pick(["", "UNLOGGED ", "COUNTER "])
    pool = [other for other in tables if other.counter == table.counter]
    using = w.using(table, ttl=w.mistake(0.1)) if w.chance(0.3) else ""
    parts = "; ".join(one(w, w.pick(pool)) for _ in range(w.pick([0, 1, 2, 2, 3, 4])))
    return f"BEGIN {kind}BATCH{using} {parts}{';' if parts else ''} APPLY BATCH"


def write(w):
    if w.chance(0.08):
        return batch(w)
    if w.chance(0.004):
        return f"TRUNCATE {w.pick(w.schema.tables).name}"
    if w.schema.views and w.chance(0.005):
        return one(w, w.pick(w.schema.views))
    return one(w, w.pick(w.schema.tables))
