"""Operators and native functions over columns and values, for selections and for terms."""

import values
from values import scalar

NUMBERS = ["tinyint", "smallint", "int", "bigint", "varint", "float", "double", "decimal"]
OPERATORS = ["+", "+", "-", "*", "/", "%"]
MATH = ["abs", "exp", "log", "log10", "round"]
COLLECTIONS = ["collection_count", "collection_min", "collection_max", "collection_sum", "collection_avg"]


def small(w, name):
    """A value that seldom overflows."""
    picked = {"float": [0.5, 1.5, -2.0], "double": [0.5, 3.0, -2.25], "decimal": [(15, 1), (2, 0), (-150, 2)]}
    return w.value(scalar(name), w.pick(picked.get(name, [1, 2, 3, -1, 7, 0])))


def operand(w, columns):
    fit = [column for column in columns if column.type.name in NUMBERS]
    if fit and w.chance(0.65):
        return w.pick(fit).name
    name = w.pick(NUMBERS)
    # a literal has no type of its own; a hint gives it one
    return f"({name}) {small(w, name)}" if w.chance(0.5) else small(w, w.pick(["int", "double", "int"]))


def expression(w, columns, depth=2):
    """A selector of a number, or of a time moved by a duration."""
    times = [column for column in columns if column.type.name in ("timestamp", "date")]
    if times and w.chance(0.3):
        step = w.value(scalar("duration"), w.pick([(0, 1, 0), (1, 2, 0), (0, 0, 3_600_000_000_000), (-1, 0, 0)]))
        return f"{w.pick(times).name} {w.pick('+-')} {step}"
    left = operand(w, columns)
    if depth and w.chance(0.3):
        left = f"({expression(w, columns, depth - 1)})"
    if w.chance(0.1):
        left = f"-{left}"
    if w.chance(0.12):
        return f"{w.pick(MATH)}({left})"
    return f"{left} {w.pick(OPERATORS)} {operand(w, columns)}"


def native(w, column):
    """A native function of one column, by its type."""
    name, ty = column.name, column.type
    if ty.name == "map" and w.chance(0.5):
        return f"{w.pick(['map_keys', 'map_values'])}({name})"
    if ty.name in ("list", "set", "map"):
        return f"{w.pick(COLLECTIONS)}({name})"
    if ty.name == "vector":
        sought = w.value(ty, values.random_value(w.rng, ty, 0))
        return f"similarity_{w.pick(['cosine', 'euclidean', 'dot_product'])}({name}, {sought})"
    if ty.name in NUMBERS:
        return f"{w.pick(MATH)}({name})"
    return f"{w.pick(['mask_default', 'mask_null', 'mask_inner', 'mask_outer'])}({name}{', 1, 1' if w.chance(0.4) else ''})"


def term(w, ty, value):
    """A value that is computed: an operation in the place of a constant."""
    return f"{w.value(ty, value)} {w.pick(OPERATORS)} {small(w, ty.name)}"
