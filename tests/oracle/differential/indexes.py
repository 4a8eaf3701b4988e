"""Secondary and storage-attached indexes over random tables, and conditions that they can answer."""

from dataclasses import dataclass

import values
import where
from schemas import Column

SAI = ["'sai'", "'SAI'", "'StorageAttachedIndex'", "'org.apache.cassandra.index.sai.StorageAttachedIndex'"]
SIMILARITIES = ["cosine", "euclidean", "dot_product"]
TEXTS = ("text", "ascii")


@dataclass
class Index:
    name: str
    table: object
    column: Column
    target: str
    """The column's name for its values; keys, values, entries or full in front of it."""
    attached: bool
    text: str
    similarity: str = ""

    def drop(self):
        return f"DROP INDEX {self.name}"


def target_of(rng, column):
    ty = column.type
    if rng.random() < 0.04:
        return rng.choice(["keys", "values", "entries", "full"])
    if ty.multi and ty.name == "map":
        return rng.choice(["", "keys", "values", "entries"])
    if ty.multi and ty.name in ("list", "set"):
        return rng.choice(["", "values"])
    return "full" if ty.name in ("list", "set", "map") and rng.random() < 0.9 else ""


def options_of(rng, column, attached):
    ty = column.type
    if not attached:
        return {}, ""
    if ty.name == "vector" and rng.random() < 0.7:
        similarity = rng.choice(SIMILARITIES)
        return {"similarity_function": similarity}, similarity
    if ty.name in TEXTS and rng.random() < 0.4:
        return {"case_sensitive": rng.choice(["false", "true"])}, ""
    if rng.random() < 0.03:
        return {rng.choice(["case_sensitive", "similarity_function", "nothing"]): rng.choice(["true", "false", "cosine", ""])}, ""
    return {}, "cosine" if ty.name == "vector" else ""


def random_index(rng, number, table):
    weights = [5 if column.name == "e0" else 2 if column.kind == "regular" else 1 for column in table.columns]
    [column] = rng.choices(table.columns, weights)
    attached = rng.random() < 0.65 or column.type.name == "vector"
    target = target_of(rng, column)
    options, similarity = options_of(rng, column, attached)
    name = f"i{number}" if rng.random() < 0.9 else ""
    custom = attached and rng.random() < 0.3
    text = f"CREATE {'CUSTOM ' if custom else ''}INDEX {'IF NOT EXISTS ' if rng.random() < 0.1 else ''}{name + ' ' if name else ''}ON {table.name} "
    text += f"({target}({column.name}))" if target else f"({column.name})"
    if attached:
        text += f" USING {rng.choice(SAI if custom else SAI[:2])}"
    if options:
        text += f" WITH OPTIONS = {{{', '.join(f'{chr(39)}{k}{chr(39)}: {chr(39)}{v}{chr(39)}' for k, v in options.items())}}}"
    return Index(name or f"{table.name}_{column.name.strip(chr(34)).replace(' ', '')}_idx", table, column, target, attached, text, similarity)


def relation(w, index):
    """A condition on the indexed target: mostly one that the index answers."""
    column, ty = index.column, index.column.type
    if ty.multi and ty.name in ("list", "set", "map") and index.target != "full":
        return where.contains(w, column)
    kind = w.rng.random() if ty.name != "inet" else 1
    if kind < 0.05:
        return where.in_list(w, column)
    if kind < 0.08:
        return f"{column.name} {w.pick(['!=', 'LIKE', 'CONTAINS', 'NOT IN', 'BETWEEN'])} {w.of_pool(column)}"
    if kind < 0.35:
        return f"{column.name} {w.pick(where.SLICES)} {w.of_pool(column, 0.02)}"
    if kind < 0.45:
        return f"{column.name} {w.pick(['>', '>='])} {w.of_pool(column)} AND {column.name} {w.pick(['<', '<='])} {w.of_pool(column)}"
    return f"{column.name} = {w.of_pool(column, 0.02)}"


def relations(w, table):
    """Conditions on columns that have an index, one or several; None where the table has none."""
    found = [index for index in w.schema.indexes if index.table is table and index.column.type.name != "vector"]
    if not found:
        return None
    return [relation(w, index) for index in w.rng.sample(found, min(len(found), w.pick([1, 1, 1, 2, 2, 3])))]


def nearest(w, table):
    """A whole SELECT of the nearest rows, which ends with their similarity; None where the table has no index on a vector.

    Rows that are equally near come in any order, and which of them a LIMIT cuts off is open. So only the similarity is selected.
    """
    found = [index for index in w.schema.indexes if index.table is table and index.column.type.name == "vector"]
    if not found:
        return None
    index = w.pick(found)
    column = index.column
    sought = [w.pick([1.0, 0.5, -2.0, 3.25, 0.0]) for _ in range(column.type.size)]
    if w.chance(0.3) and column.pool:
        sought = w.pick(column.pool)
    parts = []
    if w.chance(0.25):
        parts += where.partition_key(w, table, False)
    if w.chance(0.35):
        parts += relations(w, table) or []
    shown = f"similarity_{index.similarity}({column.name}, {w.value(column.type, sought)})"
    limit = f" LIMIT {w.number_of('int', [1, 2, 3, 10, 100])}" if not w.mistake(0.3) else ""
    allow = " ALLOW FILTERING" if w.chance(0.2) else ""
    return f"SELECT {shown} FROM {table.name}{where.joined(w, parts)} ORDER BY {column.name} ANN OF {w.value(column.type, sought)}{limit}{allow}"


__all__ = ["Index", "nearest", "random_index", "relations", "values"]
