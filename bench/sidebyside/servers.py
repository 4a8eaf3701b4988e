"""The servers: Cassandra as it is configured by default, Cassandra at its best, Helenus. Started, pinned, restarted with other settings."""

import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "drivers" / "python"))

import server as helenus  # noqa: E402

CASSANDRA = str(ROOT / "tests" / "oracle" / "cassandra")
MEMORY = "4G"
# On every server: nothing times out, no limit on tombstones and batches ends an experiment, no background work but what is asked for.
COMMON = [
    "tombstone_warn_threshold=100000000",
    "tombstone_failure_threshold=100000000",
    "batch_size_warn_threshold=10MiB",
    "batch_size_fail_threshold=20MiB",
    "unlogged_batch_across_partitions_warn_threshold=1000",
    "read_request_timeout=600s",
    "range_request_timeout=600s",
    "write_request_timeout=600s",
    "compaction_throughput=0MiB/s",
]
CASSANDRA_ONLY = ["native_transport_timeout=600s"]
# cassandra.yaml of 5.0.8 leaves these to the node: `nb` files, memtables on the heap in skip lists.
DEFAULT = ["storage_compatibility_mode=CASSANDRA_4"]
# cassandra_latest.yaml, as far as it matters here
BEST = [
    "storage_compatibility_mode=NONE",
    "sstable={selected_format: bti}",
    "memtable={configurations: {default: {class_name: TrieMemtable}}}",
    "memtable_allocation_type=offheap_objects",
    "key_cache_size=0MiB",
    "concurrent_reads=32",
    "concurrent_writes=32",
]
# Cassandra takes so much of its file cache for its pool of buffers.
CASSANDRA_POOL_MIB = 32


# as cassandra.yaml has it
PERIODIC = ["commitlog_sync=periodic", "commitlog_sync_period=10000ms"]


class Cassandra:
    def __init__(self, name, directory, ip, settings):
        self.name, self.directory, self.ip, self.port = name, directory, ip, 9042
        self.settings = [*COMMON, *CASSANDRA_ONLY, *settings]
        self.is_helenus = False

    def start(self, more=()):
        environment = dict(os.environ, ORACLE_HEAP=MEMORY)
        command = [CASSANDRA, "start", str(self.directory), self.ip, str(self.port), *self.settings, *more]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        self.pid = int((self.directory / "pid").read_text())

    def stop(self):
        subprocess.run([CASSANDRA, "stop", str(self.directory)])

    def ended(self):
        """It was killed."""
        while pathlib.Path(f"/proc/{self.pid}").exists():
            time.sleep(0.01)

    def nodetool(self, *arguments):
        subprocess.run([CASSANDRA, "nodetool", str(self.directory), *arguments], check=True, stdout=subprocess.PIPE)

    def table_directory(self, keyspace, table):
        return newest((self.directory / "data" / keyspace).glob(f"{table}-*"))

    def small_cache(self, mebibytes):
        return ["file_cache_enabled=true", f"file_cache_size={mebibytes + CASSANDRA_POOL_MIB}MiB"]


class Helenus:
    """`program`: the binary; without it the one that the tests use."""

    def __init__(self, name, directory, ip, settings, program=None):
        self.name, self.directory, self.ip, self.program = name, directory, ip, program
        self.settings = [*COMMON, *settings]
        self.is_helenus = True
        self.server = None

    def start(self, more=()):
        self.server = helenus.Server(self.directory, [*self.settings, *more], flags=["--memory", MEMORY], program=self.program)
        self.server.start()
        self.ip, self.port, self.pid = self.server.host, self.server.port, self.server.process.pid

    def stop(self):
        if self.server and self.server.process.poll() is None:
            self.server.stop()

    def ended(self):
        """It was killed."""
        self.server.kill()

    def nodetool(self, *arguments):
        done = self.server.nodetool(*arguments)
        if done.returncode:
            raise RuntimeError(f"nodetool {' '.join(arguments)}: {done.stdout}{done.stderr}")

    def table_directory(self, keyspace, table):
        return newest(self.directory.glob(f"**/{keyspace}/{table}-*"))

    def small_cache(self, mebibytes):
        return [f"file_cache_size={mebibytes}MiB"]


class Before(Helenus):
    """Another build of Helenus, to compare a change with what was before it: HELENUS_BEFORE is its binary."""

    def __init__(self, name, directory, ip, settings):
        super().__init__(name, directory, ip, settings, program=os.environ["HELENUS_BEFORE"])


KINDS = {
    "cassandra-default": (Cassandra, DEFAULT),
    "cassandra-best": (Cassandra, BEST),
    "helenus": (Helenus, PERIODIC),
    "helenus-before": (Before, PERIODIC),
    # an acknowledged write is on disk: the default
    "helenus-group": (Helenus, []),
}


def newest(directories):
    """The table's own, not that of one of the same name that was dropped."""
    return max(directories, key=lambda directory: directory.stat().st_ctime)


def pin(pid, cores):
    """All threads that the process has; those to come inherit it."""
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            os.sched_setaffinity(int(task), cores)
        except ProcessLookupError:
            pass  # a thread that ended meanwhile


def cpu_seconds(pid):
    """User and system time so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make(names, scratch, ip_prefix, ip_first):
    """A server each; Cassandra's nodes have addresses of their own."""
    made = []
    for number, name in enumerate(names):
        kind, settings = KINDS[name]
        made.append(kind(name, scratch / name, f"{ip_prefix}{ip_first + number}", settings))
    return made
