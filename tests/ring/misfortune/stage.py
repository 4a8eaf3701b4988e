"""The ring and what can be done to it: its namespaces, the rules of its clocks and disks, and the nodes that are taken by a trouble."""

import concurrent.futures

import lab
from misfortune import injection
from misfortune.wires import NETWORK, Wires

# all that is acknowledged is on disk: a kill of all nodes at once loses nothing
SETTINGS = {"commitlog_sync": "batch"}


# what Helenus and Cassandra say where neither a seed nor a known node answers
NOBODY = "none of the seeds answers"


def start_one(node):
    try:
        node.start()
    except RuntimeError as error:
        return error
    return None


class Stage:
    """A ring in namespaces, or, where this machine does not permit them, on 127.0.X.X without cuts."""

    def __init__(self, kinds, place, mode, first, settings):
        # the session by which the schema is changed, and how often it was
        self.session, self.altered = None, 0
        self.place, self.taken, self.late, self.injections = place, set(), [], {}
        try:
            self.wires, self.without = Wires(len(kinds)), None
        except RuntimeError as error:
            self.wires, self.without = None, str(error)
        where = {"network": NETWORK, "subnet": self.wires.subnet, "first": 1} if self.wires else {"first": first}
        self.ring = lab.Lab(kinds, mode=mode, keep=str(place), settings={**SETTINGS, **settings}, **where)
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
        self.ring.__enter__()
        return self

    def __exit__(self, *_):
        self.ring.__exit__()
        if self.wires:
            self.wires.close()

    def start(self, nodes):
        """All at once, as after a power cut. A node that may not reach anybody may refuse; it is started again by `start_late`."""
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
            for node, error in zip(nodes, pool.map(start_one, nodes)):
                if error is None:
                    self.taken.discard(node)
                elif NOBODY in str(error):
                    self.late.append(node)
                else:
                    raise error

    def start_late(self):
        """Nothing is cut and no other node is down any more: these have to start now."""
        late, self.late = self.late, []
        if late:
            self.start(late)
        if self.late:
            raise RuntimeError(f"does not start although all others run: {[node.tail() for node in self.late]}")
        return late

    def settle(self):
        """Waits until every node sees every node. The nodes that had to be restarted for it.

        Cassandra 5.0.8 asks a node that comes back once for a sign of life (ECHO_REQ); when that request is lost, it shows the node as
        down until one of the two restarts (Gossiper.inflightEcho, from which a failure takes nothing away). So a Cassandra that
        does not see the others is restarted; a Helenus has to see them.
        """
        try:
            self.ring.settle()
            return []
        except RuntimeError:
            blind = [node for node in self.nodes if node.kind == "cassandra" and set(node.letters().values()) != {"UN"}]
            for node in blind:
                node.stop()
                node.start()
            self.ring.settle()
            return blind

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
