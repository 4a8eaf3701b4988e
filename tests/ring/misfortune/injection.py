"""Clocks that step and disks that are slow: the library that tests/faults puts in front of libc, and a file of rules for each node.

The layout of the file is `struct rules` of tests/faults/src/preload.c: microseconds that the wall clock is ahead (i64), whether
writes are followed (u32), microseconds that a sync takes longer (u32), then rules, of which none is used here.
"""

import pathlib
import shutil
import struct
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "faults" / "src" / "preload.c"
# the head and eight rules
SIZE = 64 + 8 * 208
CLOCK_AT, SYNC_DELAY_AT = 0, 12


def build(place):
    """The library in `place`, or None where there is no compiler of C."""
    if not shutil.which("cc"):
        return None
    library = place / "preload.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    return library


class Injection:
    """The rules of one node."""

    def __init__(self, library, path):
        self.library, self.path = library, path
        path.write_bytes(bytes(SIZE))

    def variables(self):
        return {"LD_PRELOAD": str(self.library), "FAULTS_RULES": str(self.path)}

    def put(self, at, form, value):
        with open(self.path, "r+b") as file:
            file.seek(at)
            file.write(struct.pack(form, value))

    def set_clock(self, seconds):
        self.put(CLOCK_AT, "=q", int(seconds * 1_000_000))

    def set_sync_delay(self, seconds):
        self.put(SYNC_DELAY_AT, "=I", int(seconds * 1_000_000))
