"""Nodes of one ring on this machine, each of them Helenus or a real Cassandra, on 127.0.0.X.

A node has a directory in Cassandra's layout with a cassandra.yaml in it. Both kinds of node start from
that file and that directory, so a node can change its kind between a stop and a start.
"""

import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for site in sorted((ROOT / ".venv" / "lib").glob("python3*/site-packages")):
    sys.path.insert(0, str(site))

ORACLE = str(ROOT / "tests" / "oracle" / "cassandra")
PORT, STORAGE, ADMIN = 9042, 7000, 9180
READY_SECONDS = 120
# a line of describecluster: a schema version and the nodes that have it
VERSION = re.compile(r"^\s*([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}): \[([^\]]*)\]", re.M)
SETTLED_SECONDS = 90


def binary():
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    return os.environ.get("HELENUS_BIN", os.path.join(target, "debug", "helenus"))


class Node:
    """One place in the ring."""

    def __init__(self, lab, number, kind):
        self.lab, self.number, self.kind = lab, number, kind
        self.ip = f"{lab.network}.{lab.subnet}.{number}"
        # what stands before the node's commands (a network namespace), and more variables of its environment
        self.prefix, self.variables = [], {}
        self.directory = lab.scratch / f"node{number}"
        # settings of this node alone
        self.overrides = {}
        # data center and rack, which a file beside the configuration names; None: SimpleSnitch, and the same for all
        self.place = None
        self.process = None
        self.log = lab.scratch / f"node{number}.log"

    def settings(self):
        seeds = f"{self.lab.nodes[0].ip}:{STORAGE}"
        return {
            "seed_provider": "[{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: \"%s\"}]}]" % seeds,
            "storage_port": STORAGE,
            "auto_bootstrap": "false",
            "storage_compatibility_mode": self.lab.mode,
            "hinted_handoff_enabled": "true",
            "endpoint_snitch": "GossipingPropertyFileSnitch" if self.place else "SimpleSnitch",
            # one vnode is enough for rings of three, and easy to read
            "num_tokens": 4,
            **self.lab.settings,
            **self.overrides,
        }

    def start(self, kind=None):
        self.kind = kind or self.kind
        if self.place:
            (self.directory / "conf").mkdir(parents=True, exist_ok=True)
            (self.directory / "conf" / "cassandra-rackdc.properties").write_text("dc={}\nrack={}\n".format(*self.place))
        if self.kind == "cassandra":
            settings = [f"{key}={value}" for key, value in self.settings().items()]
            environment = {**os.environ, **self.variables, "ORACLE_HEAP": os.environ.get("ORACLE_HEAP", self.lab.heap)}
            if self.lab.light:
                environment["ORACLE_JAVA"] = "-XX:TieredStopAtLevel=1"
            subprocess.run([*self.prefix, ORACLE, "start", str(self.directory), self.ip, str(PORT), *settings], check=True, env=environment, stdout=subprocess.DEVNULL)
            return self
        self.write_yaml()
        command = [*self.prefix, binary(), "serve", "--config", str(self.directory / "conf" / "cassandra.yaml"), "--data-dir", str(self.directory)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **self.variables})
        told, _, _ = select.select([self.process.stdout], [], [], READY_SECONDS)
        line = self.process.stdout.readline() if told else "nothing"
        if not line.startswith("helenus ready:"):
            self.kill()
            raise RuntimeError(f"{self.ip} did not get ready: {line!r}\n{self.tail()}")
        return self

    def write_yaml(self):
        """The file that the oracle writes for a Cassandra node, if no Cassandra has been here before."""
        path = self.directory / "conf" / "cassandra.yaml"
        if path.exists():
            # the oracle appends settings to its own; Cassandra takes the last of two, Helenus refuses them
            keys = {line.partition(":")[0]: line for line in path.read_text().splitlines() if ":" in line}
            path.write_text("".join(line + "\n" for line in keys.values()))
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = {
            "cluster_name": "'Test Cluster'",
            "listen_address": self.ip,
            "rpc_address": self.ip,
            "native_transport_port": PORT,
            "data_file_directories": f"['{self.directory}/data']",
            "commitlog_directory": f"'{self.directory}/commitlog'",
            "saved_caches_directory": f"'{self.directory}/saved_caches'",
            "hints_directory": f"'{self.directory}/hints'",
            "auto_snapshot": "false",
            **self.settings(),
        }
        if "commitlog_sync" not in lines:
            lines.update(commitlog_sync="periodic", commitlog_sync_period="10000ms")
        path.write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))

    def stop(self):
        """A clean stop."""
        if self.kind == "cassandra":
            subprocess.run([ORACLE, "stop", str(self.directory)], check=True)
        elif self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            code = self.process.wait(120)
            self.process.stdout.close()
            self.process = None
            if code:
                raise RuntimeError(f"{self.ip} ended with {code}\n{self.tail()}")

    def kill(self):
        if self.kind == "cassandra":
            os.kill(self.pid(), signal.SIGKILL)
            (self.directory / "pid").unlink()
            time.sleep(0.5)
        elif self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process.stdout.close()
            self.process = None

    def pid(self):
        return int((self.directory / "pid").read_text()) if self.kind == "cassandra" else self.process.pid

    def pause(self):
        os.kill(self.pid(), signal.SIGSTOP)

    def resume(self):
        os.kill(self.pid(), signal.SIGCONT)

    def is_running(self):
        if self.kind == "cassandra":
            return (self.directory / "pid").exists()
        return self.process is not None

    def nodetool(self, *arguments):
        if self.kind == "cassandra":
            command = [*self.prefix, ORACLE, "nodetool", str(self.directory), *arguments]
        else:
            # the admin port listens on a loopback address alone
            host = self.ip if self.ip.startswith("127.") else "127.0.0.1"
            command = [*self.prefix, binary(), "nodetool", "-h", host, "-p", str(ADMIN), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"nodetool {' '.join(arguments)} on {self.ip}: {done.stdout}{done.stderr}")
        return done.stdout

    def letters(self):
        """What this node's `nodetool status` says of each address."""
        found = {}
        for line in self.nodetool("status").splitlines():
            words = line.split()
            if len(words) > 2 and len(words[0]) == 2 and words[0][0] in "UD" and words[0][1] in "NJLM":
                found[words[1].split(":")[0]] = words[0]
        return found

    def tail(self, size=3000):
        log = self.directory / "logs" / "system.log" if self.kind == "cassandra" else self.log
        return log.read_text(errors="replace")[-size:] if log.exists() else ""


class Lab:
    """A ring; `kinds` is one word a node: helenus or cassandra. `light`: Cassandra compiles quickly instead of well.

    A node's address is `network`.`subnet`.NUMBER; numbers count from `first`.
    """

    def __init__(self, kinds, subnet=0, first=31, mode="NONE", keep=None, settings=None, light=True, heap="768M", network="127.0"):
        self.scratch = pathlib.Path(keep or tempfile.mkdtemp(prefix="ring-"))
        self.keep, self.network, self.subnet, self.mode = keep, network, subnet, mode
        self.settings = settings or {}
        self.light, self.heap = light, heap
        self.nodes = []
        for place, kind in enumerate(kinds):
            self.nodes.append(Node(self, first + place, kind))

    def __enter__(self):
        # whoever ends this process ends the nodes too
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            try:
                node.kill()
            except (OSError, RuntimeError, FileNotFoundError, subprocess.SubprocessError):
                pass
        if not self.keep:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self):
        for node in self.nodes:
            node.start()
        self.settle()
        return self

    def settle(self, seconds=SETTLED_SECONDS):
        """Waits until each running node shows every running node as UN and the others as DN."""
        wanted = {node.ip: "UN" if node.is_running() else "DN" for node in self.nodes}
        until = time.monotonic() + seconds
        while True:
            seen = {node.ip: node.letters() for node in self.nodes if node.is_running()}
            if all(letters == wanted for letters in seen.values()):
                return
            if time.monotonic() > until:
                logs = "\n".join(f"--- {node.ip} ({node.kind})\n{node.tail()}" for node in self.nodes)
                raise RuntimeError(f"the ring does not settle: {seen}, wanted {wanted}\n{logs}")
            time.sleep(0.5)

    def agree(self, seconds=SETTLED_SECONDS):
        """Waits until `describecluster` of each running node has one schema version for all that run."""
        running = {node.ip for node in self.nodes if node.is_running()}
        until = time.monotonic() + seconds
        while True:
            found = [node.nodetool("describecluster") for node in self.nodes if node.is_running()]
            versions = [VERSION.findall(text) for text in found]
            at_one = {version for one in versions for version, _ in one}
            if len(at_one) == 1 and all({ip.strip() for _, ips in one for ip in ips.split(",")} == running for one in versions):
                return
            if time.monotonic() > until:
                raise RuntimeError("the schemas do not agree:\n" + "\n".join(found))
            time.sleep(0.5)
