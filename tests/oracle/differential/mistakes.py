"""Slightly invalid statements: values of another type, tokens left out or doubled, bytes too many."""

import re

import values
from values import scalar

TOKEN = re.compile(r"'(?:[^']|'')*'|[A-Za-z_][A-Za-z_0-9]*|-?\d[\w.:-]*|\?|:\w+|<=|>=|!=|\+=|-=|\S")
WORDS = "AND IN = < > ( ) , . ; NULL ? LIMIT ALLOW FILTERING USING TTL IF NOT EXISTS ORDER BY GROUP DISTINCT JSON * + - k0 c0 v0 s0 1 'x' token SET WHERE FROM".split()
TYPES = ["int", "text", "bigint", "boolean", "blob", "uuid", "double", "duration", "inet"]


def other_value(rng, ty, value):
    """A value that is not of the type, or not one that is fit."""
    kind = rng.random()
    if kind < 0.3:
        return ty, None
    if kind < 0.75:
        ty = scalar(rng.choice(TYPES))
    else:
        ty = values.random_type(rng, [], 2)
    return ty, values.random_value(rng, ty, 0.2)


def of_text(rng, text):
    """One token less, twice, in another place, or another one."""
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
    found = rng.choice(tokens)
    start, end = found.span()
    kind = rng.random()
    if kind < 0.35:
        return text[:start] + text[end:]
    if kind < 0.5:
        return text[:end] + " " + text[start:end] + text[end:]
    if kind < 0.75:
        return text[:start] + rng.choice(WORDS) + text[end:]
    if kind < 0.95:
        return text[:start] + rng.choice(WORDS) + " " + text[start:]
    return text[:start]


def of_bytes(rng, data):
    """Bytes that are no value of the type."""
    if data is None:
        return b""
    return rng.choice([data + b"\0", data[:-1], b"", b"\xff" + data, data + data])
