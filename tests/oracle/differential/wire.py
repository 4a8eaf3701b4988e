"""The native protocol as a differential run needs it: requests with every field given, answers as plain values, bytes untouched.

Connections, framing and the handshake are the Python driver's. A request carries its own time (`now_in_seconds` of version 5) and its
own write timestamp, so that both servers, today and in a year, answer the same.
"""

import struct
import threading

from cassandra.connection import DefaultEndPoint
from cassandra.cluster import DefaultConnection as Connection

VERSION = 5
ANSWER_SECONDS = 60
UNSET = "unset"
CONSISTENCY = {"ANY": 0, "ONE": 1, "TWO": 2, "QUORUM": 4, "ALL": 5, "LOCAL_QUORUM": 6, "SERIAL": 8, "LOCAL_SERIAL": 9, "LOCAL_ONE": 10}
SCALARS = {
    1: "ascii", 2: "bigint", 3: "blob", 4: "boolean", 5: "counter", 6: "decimal", 7: "double", 8: "float", 9: "int", 11: "timestamp", 12: "uuid",
    13: "text", 14: "varint", 15: "timeuuid", 16: "inet", 17: "date", 18: "time", 19: "smallint", 20: "tinyint", 21: "duration",
}


class Message:
    """What the driver wants of a request."""

    tracing = False
    custom_payload = None

    def __init__(self, opcode, body):
        self.opcode, self.body = opcode, body

    def send_body(self, f, _version):
        f.write(self.body)


def long_string(text):
    data = text.encode()
    return struct.pack(">I", len(data)) + data


def short_bytes(data):
    return struct.pack(">H", len(data)) + data


def value(data):
    if data == UNSET:
        return struct.pack(">i", -2)
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def parameters(options):
    """Consistency, flags and what they say is there."""
    flags, out = 0, b""
    given = options.get("values")
    names = options.get("names")
    if given is not None:
        flags |= 1
        out += struct.pack(">H", len(given))
        for at, data in enumerate(given):
            if names:
                out += short_bytes(names[at].encode())
            out += value(data)
        flags |= 0x40 if names else 0
    if options.get("page_size") is not None:
        flags |= 4
        out += struct.pack(">i", options["page_size"])
    if options.get("paging_state") is not None:
        flags |= 8
        out += value(options["paging_state"])
    if options.get("serial"):
        flags |= 0x10
        out += struct.pack(">H", CONSISTENCY[options["serial"]])
    flags, out = times(options, flags, out)
    return struct.pack(">HI", CONSISTENCY[options.get("consistency", "LOCAL_ONE")], flags) + out


def times(options, flags, out):
    if options.get("timestamp") is not None:
        flags |= 0x20
        out += struct.pack(">q", options["timestamp"])
    if options.get("now") is not None:
        flags |= 0x100
        out += struct.pack(">i", options["now"])
    return flags, out


def query(text, options):
    return Message(0x07, long_string(text) + parameters(options))


def prepare(text):
    return Message(0x09, long_string(text) + struct.pack(">I", 0))


def execute(prepared, options):
    return Message(0x0A, short_bytes(prepared["id"]) + short_bytes(prepared["result_id"]) + parameters(options))


def batch(kind, parts, options):
    """`parts`: a text or an id, and values."""
    out = struct.pack(">BH", kind, len(parts))
    for what, given in parts:
        out += b"\0" + long_string(what) if isinstance(what, str) else b"\1" + short_bytes(what)
        out += struct.pack(">H", len(given)) + b"".join(value(data) for data in given)
    flags, tail = 0, b""
    if options.get("serial"):
        flags |= 0x10
        tail += struct.pack(">H", CONSISTENCY[options["serial"]])
    flags, tail = times(options, flags, tail)
    return Message(0x0D, out + struct.pack(">HI", CONSISTENCY[options.get("consistency", "LOCAL_ONE")], flags) + tail)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        [found] = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return found

    def raw(self, size):
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def string(self):
        return self.raw(self.take("H")).decode()

    def long_string(self):
        return self.raw(self.take("i")).decode()

    def short_bytes(self):
        return self.raw(self.take("H"))

    def bytes(self):
        size = self.take("i")
        return None if size < 0 else self.raw(size)

    def type(self):
        code = self.take("H")
        if code == 0:
            return f"'{self.string()}'"
        if code == 0x20:
            return f"list<{self.type()}>"
        if code == 0x21:
            return f"map<{self.type()}, {self.type()}>"
        if code == 0x22:
            return f"set<{self.type()}>"
        if code == 0x30:
            keyspace, name = self.string(), self.string()
            fields = [f"{self.string()} {self.type()}" for _ in range(self.take("H"))]
            return f"{keyspace}.{name}({', '.join(fields)})"
        if code == 0x31:
            return f"tuple<{', '.join(self.type() for _ in range(self.take('H')))}>"
        return SCALARS.get(code, hex(code))

    def metadata(self, prepared):
        flags, count = self.take("I"), self.take("i")
        found = {"columns": None, "count": count}
        if prepared:
            found["keys"] = [self.take("H") for _ in range(self.take("i"))]
        if flags & 2:
            found["paging_state"] = self.bytes()
        if flags & 8:
            found["new_id"] = self.short_bytes()
        if flags & 4:
            return found
        table = f"{self.string()}.{self.string()}" if flags & 1 else None
        found["columns"] = []
        for _ in range(count):
            of = table or f"{self.string()}.{self.string()}"
            found["columns"].append([of, self.string(), self.type()])
        return found


ERRORS = {0x1000: "Hii", 0x1100: "Hii", 0x1200: "HiiB", 0x1300: "HiiB", 0x1500: "Hii"}


def decode(_version, _types, _stream, flags, opcode, body, _decompressor, _result_metadata):
    """An answer: a dictionary whose `kind` says what else is in it."""
    reader = Reader(body)
    answer = {}
    if flags & 8:
        answer["warnings"] = [reader.string() for _ in range(reader.take("H"))]
    if opcode == 0:
        code, text = reader.take("i"), reader.string()
        return {"kind": "error", "code": code, "text": text, **answer}
    assert opcode == 8, f"an answer of opcode {opcode}"
    kind = reader.take("i")
    if kind == 1:
        return {"kind": "void", **answer}
    if kind == 2:
        metadata = reader.metadata(False)
        rows = [[reader.bytes() for _ in range(metadata["count"])] for _ in range(reader.take("i"))]
        return {"kind": "rows", **metadata, "rows": rows, **answer}
    if kind == 3:
        return {"kind": "keyspace", "name": reader.string(), **answer}
    if kind == 4:
        return {"kind": "prepared", "id": reader.short_bytes(), "result_id": reader.short_bytes(), "markers": reader.metadata(True), "result": reader.metadata(False), **answer}
    return {"kind": "change", "change": reader.string(), "target": reader.string(), "names": [reader.string()], **answer}


class Peer:
    """One connection to one server."""

    def __init__(self, name, host, port):
        self.name, self.host, self.port = name, host, port
        self.connection = None
        self.keyspace = None

    def send(self, message):
        """Sends; what is handed back waits for the answer."""
        if self.connection is None or self.connection.is_closed or self.connection.is_defunct:
            self.connect()
        done, found = threading.Event(), []

        def arrived(answer):
            found.append(answer)
            done.set()

        connection = self.connection
        with connection.lock:
            stream = connection.get_request_id()
        connection.send_msg(message, stream, arrived, decoder=decode)

        def wait():
            if not done.wait(ANSWER_SECONDS):
                connection.close()
                return {"kind": "silence"}
            return found[0] if isinstance(found[0], dict) else {"kind": "broken", "text": repr(found[0])}

        return wait

    def ask(self, message):
        return self.send(message)()

    def connect(self):
        Connection.initialize_reactor()
        self.connection = Connection.factory(DefaultEndPoint(self.host, self.port), ANSWER_SECONDS, protocol_version=VERSION, cql_version=None)
        if self.keyspace:
            self.ask(query(f"USE {self.keyspace}", {}))

    def nodes(self):
        """The nodes that stand behind it: a ring has several."""
        return [self]

    def use(self, keyspace):
        self.keyspace = keyspace
        self.ask(query(f"USE {keyspace}", {}))

    def close(self):
        if self.connection is not None:
            self.connection.close()
