"""Helenus servers as child processes: started on free ports over given data directories, stopped, killed, started again; alone or as a ring."""

import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
READY_SECONDS = 30
# What a default Cassandra gives to new tables, whose answers these are compared with
CASSANDRAS_COMPACTION = "default_compaction=SizeTieredCompactionStrategy"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def binary():
    """HELENUS_BIN, or the release binary of this tree."""
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    return os.environ.get("HELENUS_BIN", os.path.join(target, "release", "helenus"))


class Server:
    def __init__(self, data_dir, settings=(), port=None, admin_port=None, flags=(), log=None, user=None, program=None):
        self.host = "127.0.0.1"
        self.port = port or free_port()
        self.admin_port = admin_port or free_port()
        self.data_dir = pathlib.Path(data_dir)
        self.log = log or self.data_dir.with_name(self.data_dir.name + ".log")
        self.settings = [CASSANDRAS_COMPACTION, *settings]
        self.flags = list(flags)
        self.user, self.program = user, program
        self.process = None
        self.seconds_to_ready = None

    def start(self):
        command = [self.program or binary(), "serve", "--data-dir", str(self.data_dir), "--listen", self.host]
        command += ["--port", str(self.port), "--admin-port", str(self.admin_port), *self.flags]
        for setting in self.settings:
            command += ["--set", setting]
        begun = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, user=self.user)
        line = self.process.stdout.readline()
        self.seconds_to_ready = time.monotonic() - begun
        if not line.startswith("helenus ready:"):
            self.process.wait(READY_SECONDS)
            raise RuntimeError(f"the server did not get ready: {line!r}\n{self.log_tail()}")
        return self

    def log_tail(self, size=4000):
        return self.log.read_text(errors="replace")[-size:] if self.log.exists() else ""

    def stop(self):
        """A clean stop; the exit code is handed back."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def kill(self):
        self.process.kill()
        return self._wait()

    def _wait(self):
        code = self.process.wait(120)
        self.process.stdout.close()
        return code

    def nodetool(self, *arguments):
        command = [self.program or binary(), "nodetool", "-h", self.host, "-p", str(self.admin_port), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=600)


def ring(home, count, settings=()):
    """Nodes of one ring at 127.0.0.1 and the addresses behind it, started one after the other."""
    port, common, nodes = free_port(), [f"storage_port={free_port()}", "ring_delay=1s", *settings], []
    for number in range(1, count + 1):
        node = Server(home / f"n{number}", port=port, settings=common, flags=["--seeds", "127.0.0.1"])
        node.host = f"127.0.0.{number}"
        nodes.append(node.start())
    return nodes
