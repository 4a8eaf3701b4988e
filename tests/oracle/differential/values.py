"""CQL types, random values of them, and how these are spelled: as literals, as bytes of the native protocol, as JSON.

A value is plain Python: integers (dates are days from 1970, times nanoseconds, timestamps milliseconds), floats, text, bytes, `(unscaled,
scale)`, `(months, days, nanoseconds)`, UUIDs; lists for list, set, tuple, vector and user type; lists of pairs for maps; None for null.
"""

import json
import struct
import uuid
from dataclasses import dataclass, field

SCALARS = "ascii bigint blob boolean date decimal double duration float inet int smallint text time timestamp timeuuid tinyint uuid varint".split()
KEYS = [name for name in SCALARS if name != "duration"]
WIDTHS = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "counter": 8}
FIXED = {"boolean": 1, "double": 8, "float": 4, "int": 4, "bigint": 8, "timestamp": 8, "timeuuid": 16, "uuid": 16}


@dataclass(frozen=True)
class Type:
    """`name` is a scalar's, or list, set, map, tuple, vector, udt."""

    name: str
    inner: tuple = ()
    frozen: bool = False
    size: int = 0
    udt: str = ""
    fields: tuple = field(default=())

    def __str__(self):
        if self.name == "udt":
            text = self.udt
        elif self.name == "vector":
            return f"vector<{self.inner[0]}, {self.size}>"
        elif self.inner:
            text = f"{self.name}<{', '.join(map(str, self.inner))}>"
        else:
            return self.name
        return f"frozen<{text}>" if self.frozen and self.name != "tuple" else text

    @property
    def multi(self):
        """Several cells."""
        return self.name in ("list", "set", "map", "udt") and not self.frozen


def freeze(ty):
    inner = tuple(freeze(part) for part in ty.inner)
    return Type(ty.name, inner, bool(inner) or ty.name == "udt", ty.size, ty.udt, ty.fields)


def has_within(ty, name):
    """Whether a type is the one of that name, or has it within."""
    return ty.name == name or any(has_within(part, name) for part in ty.inner)


def scalar(name):
    return Type(name)


def random_type(rng, udts, depth=2, key=False):
    """A type for a column; inside others everything is frozen."""
    if depth == 0 or rng.random() < 0.55:
        return scalar(rng.choice(KEYS if key else SCALARS))
    kind = rng.choice(["list", "set", "map", "tuple", "udt", "vector", "list", "set", "map"])
    inside = lambda keyed=key: freeze(random_type(rng, udts, depth - 1 if rng.random() < 0.4 else 0, keyed))
    if kind == "udt" and not udts:
        kind = "tuple"
    if kind == "udt":
        found = rng.choice(udts)
        return Type("udt", found.inner, rng.random() < 0.5, 0, found.udt, found.fields)
    if kind == "map":
        return Type("map", (inside(True), inside()), rng.random() < 0.4)
    if kind == "tuple":
        return Type("tuple", tuple(inside() for _ in range(rng.randint(1, 3))), True)
    if kind == "vector":
        return Type("vector", (scalar(rng.choice(["float", "float", "int", "text"])),), True, rng.randint(1, 3))
    return Type(kind, (inside(True) if kind == "set" else inside(),), rng.random() < 0.4)


def random_value(rng, ty, null=0.1):
    """A value, often at an edge of the type."""
    name = ty.name
    pick = rng.choice
    if name in WIDTHS:
        bits = 8 * WIDTHS[name]
        return pick([0, 1, 2, 3, -1, 7, 10, (1 << (bits - 1)) - 1, -(1 << (bits - 1))])
    if name == "varint":
        return pick([0, 1, -1, 127, 128, -129, 10**30, -(10**25)])
    if name in ("text", "ascii"):
        return pick(["", "a", "b", "c", "it''s", "abc", "B", "a b", "10"] + (["é", "日本"] if name == "text" else []))
    if name == "blob":
        return pick([b"", b"\0", b"\1\2", b"\xff\xfe", b"abc"])
    if name == "boolean":
        return pick([True, False])
    if name == "date":
        return pick([0, 1, 19000, 19417, -1, 365])
    if name == "decimal":
        return pick([(0, 0), (15, 1), (-150, 2), (1, 10), (10**20, 3), (1, 0), (100, 2)])
    if name in ("double", "float"):
        return pick([0.0, -0.0, 1.5, -2.25, 1e10, float("nan"), float("inf"), float("-inf"), 3.0])
    if name == "duration":
        return pick([(0, 0, 0), (1, 2, 3), (14, 0, 0), (0, 0, 3_600_000_000_000), (-1, -2, -3)])
    if name == "inet":
        return pick(["127.0.0.1", "10.0.0.1", "255.255.255.255", "::1", "2001:db8::1"])
    if name == "time":
        return pick([0, 1, 3_600_000_000_000, 86_399_999_999_999, 45_296_789_000_000])
    if name == "timestamp":
        return pick([0, 1, -1, 1_700_000_000_123, 1_600_000_000_000, 86_400_000])
    if name == "timeuuid":
        return uuid.UUID(pick(["50554d6e-29bb-11e5-b345-feff819cdc9f", "13814000-1dd2-11b2-8080-808080808080", "d2177dd0-eaa2-11de-a572-001b779c76e3"]))
    if name == "uuid":
        return uuid.UUID(pick(["00000000-0000-0000-0000-000000000000", "8ac6d1dc-fbeb-41e9-8f0b-362b9e155667", "50554d6e-29bb-11e5-b345-feff819cdc9f"]))
    inner = lambda part: random_value(rng, part, 0)
    if name == "vector":
        return [inner(ty.inner[0]) for _ in range(ty.size)]
    if name in ("tuple", "udt"):
        return [None if rng.random() < null else random_value(rng, part, null) for part in ty.inner]
    count = pick([0, 1, 1, 2, 2, 3])
    if name == "map":
        found = {of_equals(ty.inner[0], key): (key, inner(ty.inner[1])) for key in (inner(ty.inner[0]) for _ in range(count))}
        return list(found.values())
    items = [inner(ty.inner[0]) for _ in range(count)]
    return distinct(ty.inner[0], items) if name == "set" else items


def of_equals(ty, value):
    """A text that equal values share: the literal, with 1.00 written as 1."""
    return literal(ty, one_of_equals(ty, value))


def one_of_equals(ty, value):
    if value is None or not ty.inner:
        return (1, 0) if ty.name == "decimal" and value == (100, 2) else value
    if ty.name == "map":
        return [(one_of_equals(ty.inner[0], key), one_of_equals(ty.inner[1], found)) for key, found in value]
    inner = ty.inner if ty.name in ("tuple", "udt") else ty.inner * len(value)
    return [one_of_equals(part, item) for part, item in zip(inner, value)]


def distinct(ty, items):
    """Items of which no two are equal (deliberate.py: equal decimals as elements of one literal)."""
    return list({of_equals(ty, item): item for item in items}.values())


def number(value):
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def decimal_text(value):
    unscaled, scale = value
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = digits if scale == 0 else f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{text}" if unscaled < 0 else text


def date_text(days):
    import datetime

    return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=days))


def time_text(nanos):
    seconds, nanos = divmod(nanos, 1_000_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{nanos:09}"


def duration_text(value):
    months, days, nanos = value
    sign = "-" if min(value) < 0 else ""
    return f"{sign}{abs(months)}mo{abs(days)}d{abs(nanos)}ns"


def literal(ty, value):
    """The value as a CQL literal."""
    name = ty.name
    if value is None:
        return "null"
    if name in WIDTHS or name in ("varint", "timestamp"):
        return str(value)
    if name in ("text", "ascii"):
        return f"'{value}'"
    if name == "blob":
        return "0x" + value.hex()
    if name == "boolean":
        return "true" if value else "false"
    if name == "date":
        return f"'{date_text(value)}'"
    if name == "time":
        return f"'{time_text(value)}'"
    if name == "decimal":
        return decimal_text(value)
    if name in ("double", "float"):
        return number(value)
    if name == "duration":
        return duration_text(value)
    if name == "inet":
        return f"'{value}'"
    if name in ("uuid", "timeuuid"):
        return str(value)
    if name == "map":
        return "{" + ", ".join(f"{literal(ty.inner[0], k)}: {literal(ty.inner[1], v)}" for k, v in value) + "}"
    if name == "udt":
        return "{" + ", ".join(f"{f}: {literal(t, v)}" for f, t, v in zip(ty.fields, ty.inner, value)) + "}"
    if name == "tuple":
        return "(" + ", ".join(literal(t, v) for t, v in zip(ty.inner, value)) + ")"
    parts = ", ".join(literal(ty.inner[0], item) for item in value)
    return "{" + parts + "}" if name == "set" else "[" + parts + "]"


def big_integer(value):
    return value.to_bytes((value.bit_length() // 8) + 1, "big", signed=True)


def vint(value):
    """An unsigned variable-length integer."""
    extra = max(0, (value.bit_length() - 1) // 7) if value else 0
    extra = min(extra, 8)
    if extra == 0:
        return bytes([value])
    head = (0xFF << (8 - extra)) & 0xFF
    body = value.to_bytes(extra + 1, "big") if extra < 8 else b"\0" + value.to_bytes(8, "big")
    return bytes([body[0] | head]) + body[1:]


def zigzag(value):
    return vint((value << 1) ^ (value >> 63) if value >= 0 else ((-value) << 1) - 1)


def sized(data):
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def encode(ty, value):
    """The value as bytes of the native protocol; None for null."""
    name = ty.name
    if value is None:
        return None
    if name in WIDTHS:
        return value.to_bytes(WIDTHS[name], "big", signed=True)
    if name == "varint":
        return big_integer(value)
    if name in ("text", "ascii"):
        return value.replace("''", "'").encode()
    if name == "blob":
        return value
    if name == "boolean":
        return b"\1" if value else b"\0"
    if name == "date":
        return struct.pack(">I", value + (1 << 31))
    if name in ("time", "timestamp"):
        return struct.pack(">q", value)
    if name == "decimal":
        return struct.pack(">i", value[1]) + big_integer(value[0])
    if name == "double":
        return struct.pack(">d", value)
    if name == "float":
        return struct.pack(">f", value)
    if name == "duration":
        return b"".join(zigzag(part) for part in value)
    if name == "inet":
        import ipaddress

        return ipaddress.ip_address(value).packed
    if name in ("uuid", "timeuuid"):
        return value.bytes
    if name == "map":
        return struct.pack(">i", len(value)) + b"".join(sized(encode(ty.inner[0], k)) + sized(encode(ty.inner[1], v)) for k, v in value)
    if name in ("tuple", "udt"):
        return b"".join(sized(encode(t, v)) for t, v in zip(ty.inner, value))
    if name == "vector":
        parts = [encode(ty.inner[0], item) for item in value]
        return b"".join(parts) if ty.inner[0].name in FIXED else b"".join(vint(len(part)) + part for part in parts)
    return struct.pack(">i", len(value)) + b"".join(sized(encode(ty.inner[0], item)) for item in value)


def as_json(ty, value):
    """The value as INSERT … JSON takes it: what json.dumps makes text of."""
    name = ty.name
    if value is None:
        return None
    if name in ("double", "float"):
        return value if value == value and abs(value) != float("inf") else number(value)
    if name in ("text", "ascii"):
        return value.replace("''", "'")
    if name in WIDTHS or name in ("varint", "boolean"):
        return value
    if name == "timestamp":
        return f"{date_text(value // 86_400_000)} {time_text(value % 86_400_000 * 1_000_000)[:12]}Z"
    if name == "decimal":
        return decimal_text(value)
    if name == "map":
        return {k if isinstance(k, str) else json.dumps(k): v for k, v in ((as_json(ty.inner[0], k), as_json(ty.inner[1], v)) for k, v in value)}
    if name == "udt":
        return {f: as_json(t, v) for f, t, v in zip(ty.fields, ty.inner, value)}
    if name == "tuple":
        return [as_json(t, v) for t, v in zip(ty.inner, value)]
    if name in ("list", "set", "vector"):
        return [as_json(ty.inner[0], item) for item in value]
    return literal(ty, value).strip("'")
