"""A client that costs little: version 4 of the native protocol over one blocking socket, values and rows as bytes.

Used by `bench/language`, whose requests have values that `bench/lean` does not make (vectors). One thread, one connection; writes are sent
in windows, reads one at a time. Knows no type: who calls packs the values.
"""

import socket
import struct
import time

HEADER = 9
ERROR, READY, RESULT = 0, 2, 8
VOID, ROWS, SET_KEYSPACE, PREPARED, CHANGE = 1, 2, 3, 4, 5
WINDOW = 128
"""Requests under way at once while writing."""
LOCAL_ONE = 10


class Refused(Exception):
    """What the server said instead of a result."""


def values_of(values):
    return struct.pack(">H", len(values)) + b"".join(struct.pack(">i", len(one)) + one for one in values)


class Plain:
    def __init__(self, ip, port=9042):
        self.socket = socket.create_connection((ip, port), 60)
        self.socket.settimeout(900)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.send(1, struct.pack(">H", 1) + b"\0\x0bCQL_VERSION\0\x053.0.0")
        assert self.receive()[0] == READY

    def frame(self, opcode, body, stream=0):
        return struct.pack(">BBhBI", 4, 0, stream, opcode, len(body)) + body

    def send(self, opcode, body):
        self.socket.sendall(self.frame(opcode, body))

    def take(self, size):
        while len(self.buffer) < size:
            got = self.socket.recv(1 << 18)
            if not got:
                raise ConnectionError("the server closed the connection")
            self.buffer += got
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def receive(self):
        """Opcode and body of the next answer, without its warnings."""
        header = self.take(HEADER)
        opcode, size = struct.unpack_from(">BI", header, 4)
        body = self.take(size)
        if opcode == ERROR:
            [code] = struct.unpack_from(">i", body)
            [length] = struct.unpack_from(">H", body, 4)
            raise Refused(f"{code:04x} {body[6 : 6 + length].decode()}")
        if header[1] & 8:
            [count] = struct.unpack_from(">H", body)
            at = 2
            for _ in range(count):
                at += 2 + struct.unpack_from(">H", body, at)[0]
            body = body[at:]
        return opcode, body

    def query(self, text):
        """Runs a statement without values; rows as lists of bytes."""
        data = text.encode()
        self.send(7, struct.pack(">I", len(data)) + data + struct.pack(">HBi", LOCAL_ONE, 4, 5000))
        return rows_of(self.receive()[1])[0]

    def prepare(self, text):
        data = text.encode()
        self.send(9, struct.pack(">I", len(data)) + data)
        _, body = self.receive()
        assert struct.unpack_from(">i", body)[0] == PREPARED
        [length] = struct.unpack_from(">H", body, 4)
        return body[6 : 6 + length]

    def execution(self, prepared, values, page=5000, state=None):
        body = struct.pack(">H", len(prepared)) + prepared + struct.pack(">HB", LOCAL_ONE, 1 | 4 | (8 if state else 0)) + values_of(values)
        body += struct.pack(">i", page)
        return body + (struct.pack(">i", len(state)) + state if state else b"")

    def rows(self, prepared, values, page=5000):
        """All rows of a prepared read, every page of them."""
        found, state = [], None
        while True:
            self.send(10, self.execution(prepared, values, page, state))
            rows, state = rows_of(self.receive()[1])
            found += rows
            if not state:
                return found

    def write(self, prepared, many):
        """Executes a prepared statement for each list of values, a window of them at a time. Returns how many there were."""
        sent = done = 0
        batch = []
        for values in many:
            batch.append(self.frame(10, self.execution(prepared, values)))
            sent += 1
            if len(batch) == WINDOW // 4:
                self.socket.sendall(b"".join(batch))
                batch.clear()
                while sent - done > WINDOW:
                    self.receive()
                    done += 1
        self.socket.sendall(b"".join(batch))
        while done < sent:
            self.receive()
            done += 1
        return sent

    def batches(self, prepared, many, size=64):
        """As `write`, in unlogged batches."""
        group = []

        def body():
            parts = b"".join(b"\1" + struct.pack(">H", len(prepared)) + prepared + values_of(values) for values in group)
            return self.frame(13, b"\1" + struct.pack(">H", len(group)) + parts + struct.pack(">HB", LOCAL_ONE, 0))

        waiting = 0
        for values in many:
            group.append(values)
            if len(group) == size:
                self.socket.sendall(body())
                group.clear()
                waiting += 1
                if waiting == 8:
                    self.receive()
                    waiting -= 1
        if group:
            self.socket.sendall(body())
            waiting += 1
        for _ in range(waiting):
            self.receive()


def rows_of(body):
    """Rows of a result and the paging state, if it has one."""
    [kind] = struct.unpack_from(">i", body)
    if kind != ROWS:
        return [], None
    flags, columns = struct.unpack_from(">ii", body, 4)
    at, state = 12, None
    if flags & 2:
        [size] = struct.unpack_from(">i", body, at)
        state = body[at + 4 : at + 4 + size]
        at += 4 + size
    if not flags & 4:
        at = past_columns(body, at, flags, columns)
    [count] = struct.unpack_from(">i", body, at)
    at += 4
    rows = []
    for _ in range(count):
        row = []
        for _ in range(columns):
            [size] = struct.unpack_from(">i", body, at)
            at += 4
            row.append(body[at : at + size] if size >= 0 else None)
            at += max(size, 0)
        rows.append(row)
    return rows, state


def past_columns(body, at, flags, columns):
    def string(at):
        return at + 2 + struct.unpack_from(">H", body, at)[0]

    def of_type(at):
        [code] = struct.unpack_from(">H", body, at)
        at += 2
        if code == 0:
            return string(at)
        if code in (0x20, 0x22):
            return of_type(at)
        if code == 0x21:
            return of_type(of_type(at))
        if code == 0x31:
            [count] = struct.unpack_from(">H", body, at)
            at += 2
            for _ in range(count):
                at = of_type(at)
        return at

    if flags & 1:
        at = string(string(at))
    for _ in range(columns):
        at = string(at) if flags & 1 else string(string(string(at)))
        at = of_type(at)
    return at


def timed(call):
    """Seconds that a call takes, and what it gives."""
    begun = time.perf_counter()
    found = call()
    return time.perf_counter() - begun, found
