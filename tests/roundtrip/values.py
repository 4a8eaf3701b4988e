"""CQL types with what a generator needs of each: its name, random values as serialized bytes, and the order of those.

Orders are keys for `sorted`, made so that they agree with Cassandra's comparators for the values that are generated here.
"""

import struct
import uuid


class Type:
    """`name` as in CQL; `value(chance)` a random serialized value; `order(bytes)` its place; `multi_cell`: stored cell by cell."""

    multi_cell = False

    def __init__(self, name, value, order=None):
        self.name, self.value, self._order = name, value, order

    def order(self, data):
        return self._order(data)

    def frozen(self):
        return self

    def __repr__(self):
        return self.name


def integer(size):
    def value(chance):
        bits = 8 * size
        number = chance.choice([0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), chance.randrange(-9, 9), chance.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))])
        return number.to_bytes(size, "big", signed=True)

    return value, lambda data: int.from_bytes(data, "big", signed=True)


def words(alphabet):
    def value(chance):
        return "".join(chance.choice(alphabet) for _ in range(chance.choice([0, 1, 1, 2, 3, 8, 40]))).encode()

    return value, lambda data: data


def minimal(number):
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def varint(chance):
    return minimal(chance.choice([0, 1, -1, 127, 128, -128, -129, chance.randrange(-(2**100), 2**100)]))


def decimal(chance):
    # odd, so that no two of one scale are equal numbers, and one scale a generator
    return struct.pack(">i", 2) + minimal(2 * chance.randrange(-(10**12), 10**12) + 1)


def real(code):
    def value(chance):
        return struct.pack(">" + code, chance.choice([1.5, -2.25, 1e10, -1e-10, chance.randrange(-50, 50) + 0.5, float("inf"), float("-inf")]))

    return value, lambda data: struct.unpack(">" + code, data)[0]


def duration(chance):
    def vint(number):
        zigzag = number << 1 if number >= 0 else (-number << 1) - 1
        size = max(1, (zigzag.bit_length() + 6) // 7)
        if size > 8:
            return b"\xff" + zigzag.to_bytes(8, "big")
        mask = (0xFF << (9 - size)) & 0xFF
        encoded = bytearray(zigzag.to_bytes(size, "big"))
        encoded[0] |= mask
        return bytes(encoded)

    sign = chance.choice([1, -1])
    return b"".join(vint(sign * chance.randrange(limit)) for limit in (3, 100, 10**15))


def timeuuid(chance):
    made = uuid.UUID(fields=(chance.getrandbits(32), chance.getrandbits(16), 0x1000 | chance.getrandbits(12), 0x80, chance.getrandbits(8), chance.getrandbits(48)))
    return made.bytes


def timeuuid_order(data):
    made = uuid.UUID(bytes=data)
    return made.time, bytes(byte ^ 0x80 for byte in data[8:])


def inet(chance):
    return bytes(chance.getrandbits(8) for _ in range(chance.choice([4, 16])))


def random_bytes(chance):
    return bytes(chance.getrandbits(8) for _ in range(chance.choice([0, 1, 2, 7, 60, 300])))


SCALARS = [
    Type("ascii", *words("abz~ ")),
    Type("bigint", *integer(8)),
    Type("blob", random_bytes, lambda data: data),
    Type("boolean", lambda chance: bytes([chance.randrange(2)]), lambda data: data),
    Type("date", lambda chance: struct.pack(">I", chance.choice([0, 2**31, 2**32 - 1, chance.getrandbits(32)])), lambda data: data),
    Type("decimal", decimal, lambda data: int.from_bytes(data[4:], "big", signed=True)),
    Type("double", *real("d")),
    Type("duration", duration),
    Type("float", *real("f")),
    Type("inet", inet, lambda data: data),
    Type("int", *integer(4)),
    Type("smallint", *integer(2)),
    Type("text", *words("aé漢\U0001f600Z ")),
    Type("time", lambda chance: struct.pack(">q", chance.choice([0, 86399999999999, chance.randrange(86400000000000)])), lambda data: data),
    Type("timestamp", *integer(8)),
    Type("timeuuid", timeuuid, timeuuid_order),
    Type("tinyint", *integer(1)),
    Type("uuid", lambda chance: uuid.UUID(int=chance.getrandbits(128), version=4).bytes, lambda data: data),
    Type("varint", varint, lambda data: int.from_bytes(data, "big", signed=True)),
]
ORDERED = [kind for kind in SCALARS if kind._order]
FIXED = {"bigint": 8, "boolean": 1, "double": 8, "float": 4, "int": 4, "timestamp": 8, "timeuuid": 16, "uuid": 16}


def pack(parts):
    """Parts with their lengths; None is null."""
    return b"".join(struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part for part in parts)


def packed(parts):
    return struct.pack(">i", len(parts)) + pack(parts)


def unpack(data):
    parts, at = [], 0
    while at < len(data):
        [size] = struct.unpack_from(">i", data, at)
        at += 4
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return parts


class Collection(Type):
    """A list, set or map; cells of its own unless it is frozen."""

    def __init__(self, kind, inner, is_frozen):
        self.kind, self.inner, self.multi_cell = kind, inner, not is_frozen
        text = f"{kind}<{', '.join(part.name for part in inner)}>"
        self.name = f"frozen<{text}>" if is_frozen else text

    def frozen(self):
        return Collection(self.kind, self.inner, True)

    def elements(self, chance, least=0):
        """Elements of a list; of a set in order, each once; pairs of a map."""
        count = chance.choice([least, 1, 2, 5])
        if self.kind == "list":
            return [self.inner[0].value(chance) for _ in range(count)]
        keys = {}
        for _ in range(count):
            key = self.inner[0].value(chance)
            keys[self.inner[0].order(key)] = key
        in_order = [keys[place] for place in sorted(keys)]
        return in_order if self.kind == "set" else [(key, self.inner[1].value(chance)) for key in in_order]

    def join(self, elements):
        if self.kind == "map":
            return struct.pack(">i", len(elements)) + pack([part for pair in elements for part in pair])
        return packed(elements)

    def value(self, chance):
        return self.join(self.elements(chance))

    def order(self, data):
        parts = unpack(data[4:])
        kinds = self.inner * (len(parts) // len(self.inner))
        return tuple(kind.order(part) for kind, part in zip(kinds, parts))


class Tuple(Type):
    """A tuple, or a user type, whose fields have names; a user type that is not frozen has a cell for each field."""

    def __init__(self, fields, udt=None, is_frozen=True):
        self.fields, self.udt, self.multi_cell = fields, udt, bool(udt) and not is_frozen
        text = udt or f"tuple<{', '.join(kind.name for kind in fields)}>"
        self.name = text if self.multi_cell else f"frozen<{text}>"

    def frozen(self):
        return Tuple(self.fields, self.udt, True)

    def parts(self, chance):
        return [None if chance.random() < 0.15 else kind.value(chance) for kind in self.fields]

    def value(self, chance):
        return pack(self.parts(chance))

    def order(self, data):
        return tuple((part is not None, kind.order(part) if part is not None else None) for kind, part in zip(self.fields, unpack(data)))


class Vector(Type):
    def __init__(self, inner, size):
        self.inner, self.size = inner, size
        self.name = f"vector<{inner.name}, {size}>"

    def value(self, chance):
        parts = [self.inner.value(chance) for _ in range(self.size)]
        if self.inner.name in FIXED:
            return b"".join(parts)
        return b"".join(unsigned(len(part)) + part for part in parts)


def unsigned(number):
    size = max(1, (number.bit_length() + 6) // 7)
    encoded = bytearray(number.to_bytes(size, "big"))
    encoded[0] |= (0xFF << (9 - size)) & 0xFF
    return bytes(encoded)


def any_type(chance, udts, depth=2, ordered=False):
    """A random type, frozen where it has parts; `ordered`: its values can be put in order here."""
    scalars = ORDERED if ordered else SCALARS
    if depth == 0 or chance.random() < 0.6:
        return chance.choice(scalars)
    inner = lambda ordered=ordered: any_type(chance, udts, depth - 1, ordered)
    shape = chance.choice(["list", "set", "map", "tuple", "vector", "udt"])
    if shape == "list":
        return Collection("list", [inner()], True)
    if shape == "set":
        return Collection("set", [inner(True)], True)
    if shape == "map":
        return Collection("map", [inner(True), inner()], True)
    if shape == "vector" and not ordered:
        return Vector(chance.choice([kind for kind in SCALARS if kind.name in ("float", "int", "text", "double", "varint")]), chance.choice([1, 3]))
    if shape == "udt" and udts:
        found = [udt for udt in udts if not ordered or all(is_ordered(kind) for kind in udt.fields)]
        if found:
            return chance.choice(found).frozen()
    return Tuple([inner() for _ in range(chance.choice([1, 2, 3]))])


def is_ordered(kind):
    if isinstance(kind, Collection):
        return all(is_ordered(part) for part in kind.inner)
    if isinstance(kind, Tuple):
        return all(is_ordered(part) for part in kind.fields)
    return not isinstance(kind, Vector) and kind._order is not None


def any_multi_cell(chance, udts):
    """A random type that is stored cell by cell."""
    inner = lambda ordered=False: any_type(chance, udts, 1, ordered)
    shape = chance.choice(["list", "set", "map", "udt"])
    if shape == "udt" and udts:
        udt = chance.choice(udts)
        return Tuple(udt.fields, udt.udt, False)
    if shape == "list":
        return Collection("list", [inner()], False)
    if shape == "set":
        return Collection("set", [inner(True)], False)
    return Collection("map", [inner(True), inner()], False)
