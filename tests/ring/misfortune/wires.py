"""Network namespaces of one machine: a bridge, and for each node a namespace with one cable to the bridge.

    host ── bridge 10.77.S.254 ─┬─ node 1, 10.77.S.1
                                ├─ node 2, 10.77.S.2
                                └─ node 3, 10.77.S.3

Clients stay outside, on the host. A cut is a rule of iptables inside of the namespace that should not hear: packets are dropped
without an answer, as by a broken switch, and connections that are open stay open. Each cut has one direction.
"""

import shutil
import subprocess

NETWORK = "10.77"
SUBNETS = range(64, 250)
TOOLS = ("ip", "iptables")


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


class Wires:
    """Bridge and namespaces, for so many nodes. Raises RuntimeError, with the reason, where this machine does not permit them."""

    def __init__(self, count):
        for tool in TOOLS:
            if not shutil.which(tool):
                raise RuntimeError(f"{tool} is missing")
        self.numbers, self.made = range(1, count + 1), []
        self.subnet = self.take_subnet()
        try:
            run("ip", "address", "add", f"{NETWORK}.{self.subnet}.254/24", "dev", self.bridge())
            run("ip", "link", "set", self.bridge(), "up")
            for number in self.numbers:
                self.lay(number)
            # whether rules are permitted shows now, and not in the middle of a run
            self.cut(1, 2)
            self.heal()
        except subprocess.CalledProcessError as error:
            self.close()
            raise RuntimeError(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error

    def take_subnet(self):
        """The first subnet whose bridge nobody has made: runs side by side do not meet."""
        last = ""
        for subnet in SUBNETS:
            done = subprocess.run(["ip", "link", "add", f"helenus{subnet}", "type", "bridge"], capture_output=True, text=True)
            if done.returncode == 0:
                return subnet
            last = done.stderr.strip()
            if "exists" not in last:
                break
        raise RuntimeError(f"no bridge: {last}")

    def bridge(self):
        return f"helenus{self.subnet}"

    def space(self, number):
        return f"helenus{self.subnet}-{number}"

    def address(self, number):
        return f"{NETWORK}.{self.subnet}.{number}"

    def prefix(self, number):
        """What stands before a command that runs in the namespace of a node."""
        return ["ip", "netns", "exec", self.space(number)]

    def lay(self, number):
        outer, inner = f"h{self.subnet}n{number}", f"i{self.subnet}n{number}"
        run("ip", "netns", "add", self.space(number))
        self.made.append(self.space(number))
        run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
        run("ip", "link", "set", inner, "netns", self.space(number))
        run("ip", "link", "set", outer, "master", self.bridge())
        run("ip", "link", "set", outer, "up")
        inside = self.prefix(number)
        run(*inside, "ip", "address", "add", f"{self.address(number)}/24", "dev", inner)
        run(*inside, "ip", "link", "set", inner, "up")
        run(*inside, "ip", "link", "set", "lo", "up")

    def cut(self, deaf, speaker):
        """Nothing that `speaker` sends arrives at `deaf` any more."""
        run(*self.prefix(deaf), "iptables", "-w", "-A", "INPUT", "-s", self.address(speaker), "-j", "DROP")

    def mend(self, deaf, speaker):
        run(*self.prefix(deaf), "iptables", "-w", "-D", "INPUT", "-s", self.address(speaker), "-j", "DROP")

    def heal(self):
        for number in self.numbers:
            run(*self.prefix(number), "iptables", "-w", "-F", "INPUT")

    def delay(self, number, milliseconds, others):
        """What a node sends to `others` is under way for so much longer. False: the kernel has no netem."""
        inside, device = self.prefix(number), f"i{self.subnet}n{number}"
        try:
            run(*inside, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "prio")
            run(*inside, "tc", "qdisc", "add", "dev", device, "parent", "1:3", "handle", "30:", "netem", "delay", f"{milliseconds}ms")
            for other in others:
                match = ["u32", "match", "ip", "dst", f"{self.address(other)}/32", "flowid", "1:3"]
                run(*inside, "tc", "filter", "add", "dev", device, "protocol", "ip", "parent", "1:", "prio", "3", *match)
        except (subprocess.CalledProcessError, FileNotFoundError):
            subprocess.run([*inside, "tc", "qdisc", "del", "dev", device, "root"], capture_output=True)
            return False
        return True

    def close(self):
        for space in self.made:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)
        subprocess.run(["ip", "link", "delete", self.bridge()], capture_output=True)
