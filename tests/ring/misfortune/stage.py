"""The ring and what can be done to it: its namespaces, the rules of its clocks and disks, and the nodes that are taken by a trouble."""

import concurrent.futures

import lab
from misfortune import injection
from misfortune.wires import NETWORK, Wires

# all that is acknowledged is on disk: a kill of all nodes at once loses nothing
SETTINGS = {"commitlog_sync": "batch"}


class Stage:
    """A ring in namespaces, or, where this machine does not permit them, on 127.0.X.X without cuts."""

    def __init__(self, kinds, place, mode, first):
        self.place, self.taken, self.injections = place, set(), {}
        try:
            self.wires, self.without = Wires(len(kinds)), None
        except RuntimeError as error:
            self.wires, self.without = None, str(error)
        where = {"network": NETWORK, "subnet": self.wires.subnet, "first": 1} if self.wires else {"first": first}
        self.ring = lab.Lab(kinds, mode=mode, keep=str(place), settings=SETTINGS, **where)
        self.nodes = self.ring.nodes
        library = injection.build(place)
        for place_of, node in enumerate(self.nodes, 1):
            if self.wires:
                node.prefix = self.wires.prefix(place_of)
            # Java reads the clock by other ways
            if library and node.kind == "helenus":
                self.injections[node.number] = injection.Injection(library, place / f"rules{node.number}")
                node.variables = self.injections[node.number].variables()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ring.__exit__()
        if self.wires:
            self.wires.close()

    def start(self, nodes):
        """All at once, as after a power cut; the first error is raised."""
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(lambda node: node.start(), nodes))

    def dead(self):
        """Nodes that should run and do not."""
        here = [node for node in self.nodes if node not in self.taken and node.kind == "helenus"]
        return [node for node in here if node.process is None or node.process.poll() is not None]

    def panics(self):
        """Lines of the nodes' logs that tell of a broken invariant."""
        found = []
        for node in self.nodes:
            if node.kind == "helenus" and node.log.exists():
                lines = node.log.read_text(errors="replace").splitlines()
                found += [f"n{node.number}: {line[:300]}" for line in lines if "panicked" in line]
        return found
