"""Materialized views over random tables: keys in any order, parts of the columns, conditions, and definitions that are refused.

A view is a `Table` whose columns stand in the places that its key gives them, so that SELECT is drawn for it as for any table.
"""

import values
from schemas import Column, Table


def key_columns(rng, table):
    """The columns of the view's key in their order; now and then not those that it needs."""
    keys = table.of("partition", "clustering")
    regular = table.of("regular")
    chosen = list(keys)
    if regular and rng.random() < 0.6:
        chosen.append(rng.choice(regular))
    rng.shuffle(chosen)
    mistake = rng.random()
    if mistake < 0.03 and len(chosen) > 1:
        chosen.pop()
    elif mistake < 0.06 and regular:
        chosen.append(rng.choice(regular))
    elif mistake < 0.08 and table.of("static"):
        chosen.append(rng.choice(table.of("static")))
    return chosen


def condition(rng, column):
    """A condition on a column of the key instead of IS NOT NULL."""
    literal = lambda: values.literal(column.type, rng.choice(column.pool))
    kind = rng.random()
    if not column.pool or kind < 0.86:
        return f"{column.name} IS NOT NULL"
    if kind < 0.91:
        return f"{column.name} = {literal()}"
    if kind < 0.97:
        return f"{column.name} {rng.choice(['<', '>=', '>', '<='])} {literal()}"
    return f"{column.name} IN ({literal()}, {literal()})"


def random_view(rng, name, table):
    key = key_columns(rng, table)
    cut = min(len(key), rng.choice([1, 1, 1, 2]))
    rest = [column for column in table.columns if column not in key]
    whole = rng.random() < 0.45 and (not table.of("static") or rng.random() < 0.1)
    shown = rest if whole else [column for column in rest if column.kind == "regular" and rng.random() < 0.5]
    conditions = [condition(rng, column) for column in key]
    if rng.random() < 0.03:
        conditions.pop()
    if shown and rng.random() < 0.04:
        conditions.append(condition(rng, rng.choice(shown)))
    columns = [Column(c.name, c.type, "partition" if at < cut else "clustering", rng.random() < 0.25 and not c.type.inner, c.pool) for at, c in enumerate(key)]
    columns += [Column(c.name, c.type, c.kind, False, c.pool) for c in shown]
    view = Table(name, columns, [])
    view.base = table
    names = "*" if whole else ", ".join(column.name for column in (key + shown))
    partition, clustering = columns[:cut], columns[cut : len(key)]
    text = f"CREATE MATERIALIZED VIEW {name} AS SELECT {names} FROM {table.name} WHERE {' AND '.join(conditions)} PRIMARY KEY ("
    text += ", ".join([f"({', '.join(c.name for c in partition)})"] + [c.name for c in clustering]) + ")"
    if any(c.descending for c in clustering):
        text += f" WITH CLUSTERING ORDER BY ({', '.join(c.name + (' DESC' if c.descending else ' ASC') for c in clustering)})"
    for column in columns[:cut]:
        column.descending = False
    view.text = text
    view.moves = any(column.kind != "partition" and values.has_within(column.type, "decimal") for column in key[:cut])
    view.drifts = all(column.kind != "regular" for column in key) and any(column.kind == "regular" for column in rest if column not in shown)
    return view
