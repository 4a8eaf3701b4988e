"""The judges of histories that are not linearizable by contract, and what each promises. Each returns its findings, a sentence each.

Registers: a QUORUM read that begins after a QUORUM write was acknowledged shows it or a newer one, and no read shows less than a
read that ended before it began (blocking read repair). What it shows was asked for before the read ended, and both columns are of one write.
Sets: the same for each element: what was added is there until it is removed, what was removed stays away, nothing is invented.
Counters: a read shows no less than what was acknowledged before it began, and no more than what was asked for before it ended.
Batches: the last read of both tables has every batch that was acknowledged, and none in one of them alone.
Bank: each read at SERIAL has the whole sum, and no account is overdrawn. (That its history is linearizable is judged apart.)
Appends: lists that transactions append to are strictly serializable (cycles.py).

An operation whose outcome is unknown may have taken effect at any moment after it began, or never.
"""

import heapq
import json

from misfortune.cycles import appends

ACCOUNTS, SUM = 4, 400


def load(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def by_key(operations):
    found = {}
    for operation in operations:
        found.setdefault(operation["key"], []).append(operation)
    return found


class Floor:
    """The greatest of the values that were known before a moment, and the operation that told it. Moments ascend."""

    def __init__(self, known):
        self.known, self.value, self.why = [], None, None
        for operation, value in known:
            self.add(operation, value)

    def add(self, operation, value):
        """`value` is known when the operation has ended."""
        heapq.heappush(self.known, (operation["to"], value, id(operation), operation))

    def before(self, moment):
        while self.known and self.known[0][0] < moment:
            _, value, _, why = heapq.heappop(self.known)
            if self.value is None or value > self.value:
                self.value, self.why = value, why
        return self.value


def registers(operations):
    findings = []
    for of_key in by_key(operations).values():
        findings += register(of_key)
    return findings


def register(operations):
    findings = []
    writes = {one["in"]: one for one in operations if one["op"] == "write"}
    deletes = [one for one in operations if one["op"] == "delete"]
    changes = [one for one in operations if one["op"] != "read" and one["to"] is not None]
    acknowledged, seen = Floor([(one, one["in"]) for one in changes]), Floor([])
    reads = sorted((one for one in operations if one["op"] == "read" and one["to"] is not None), key=lambda one: one["from"])
    for read in reads:
        told, shown = acknowledged.before(read["from"]), seen.before(read["from"])
        stamp, wrong = explain(read, writes, deletes, max(told or 0, shown or 0))
        if wrong:
            findings.append(f"registers: {wrong}: {read}")
            continue
        if told is not None and (stamp is None or stamp < told):
            findings.append(f"registers: acknowledged and not seen: {acknowledged.why}; {read}")
        elif shown is not None and (stamp is None or stamp < shown):
            findings.append(f"registers: a read goes back: {seen.why}; {read}")
        if stamp is not None:
            seen.add(read, stamp)
    return findings


def explain(read, writes, deletes, floor):
    """The stamp of the change that a read shows, None if no change explains it, and what is wrong with it in any case."""
    if not read["out"]:
        # the oldest deletion that could explain it; at first there is nothing without any
        able = [one["in"] for one in deletes if one["from"] < read["to"] and one["in"] >= floor]
        return (min(able, default=None) if floor else 0), None
    value, twin = read["out"]
    if value not in writes or writes[value]["from"] > read["to"]:
        return None, "nobody wrote what is read"
    return value, "half of a write" if twin != str(value) else None


def sets(operations):
    findings = []
    for of_key in by_key(operations).values():
        findings += one_set(of_key)
    return findings


def one_set(operations):
    added = {one["in"]: one for one in operations if one["op"] == "add"}
    removed = removals(operations, added)
    findings, first_seen, first_gone = [], {}, {}
    reads = [one for one in operations if one["op"] in ("read", "least", "greatest") and one["to"] is not None]
    for read in sorted(reads, key=lambda one: one["to"]):
        elements = set(read["out"])
        if len(elements) != len(read["out"]):
            findings.append(f"sets: an element twice: {short(read)}")
        for element in elements:
            if element not in added or added[element]["from"] > read["to"]:
                findings.append(f"sets: element {element} was never added: {short(read)}")
            elif gone := next((one for one in removed.get(element, []) if ended_before(one, read)), None):
                findings.append(f"sets: element {element} is back: {gone}; {short(read)}")
            elif element in first_gone and ended_before(first_gone[element], read):
                findings.append(f"sets: element {element} is back: {short(first_gone[element])}; {short(read)}")
            else:
                first_seen.setdefault(element, read)
        for element in added.keys() - elements:
            if not covers(read, element):
                continue
            may_be_gone = any(one["from"] < read["to"] for one in removed.get(element, []))
            known = ended_before(added[element], read) or (element in first_seen and ended_before(first_seen[element], read))
            if known and may_be_gone:
                first_gone.setdefault(element, read)
            elif known:
                findings.append(f"sets: element {element} is lost: {added[element]}; {short(read)}")
    return findings


def removals(operations, added):
    """The removals of each element, of a range or of itself."""
    found = {}
    for one in operations:
        if one["op"] == "remove":
            for element in range(one["in"][0], one["in"][1] + 1):
                if element in added:
                    found.setdefault(element, []).append(one)
    return found


def ended_before(one, other):
    return one["to"] is not None and one["to"] < other["from"]


def covers(read, element):
    """Whether an element that is there has to be in the answer."""
    if read["op"] == "read" or len(read["out"]) < read["in"]:
        return True
    return element < max(read["out"]) if read["op"] == "least" else element > min(read["out"])


def short(read):
    return {**read, "out": f"{len(read['out'])} elements"}


def counters(operations):
    findings = []
    for key, of_key in by_key(operations).items():
        adds = [one for one in of_key if one["op"] == "add"]
        told = sorted((one["to"], one["in"]) for one in adds if one["to"] is not None)
        asked = sorted((one["from"], one["in"]) for one in adds)
        reads = [one for one in of_key if one["op"] == "read" and one["to"] is not None]
        least = sums(told, [read["from"] for read in reads])
        most = sums(asked, [read["to"] for read in reads])
        for read in reads:
            low, high = least[read["from"]], most[read["to"]]
            if not low <= read["out"] <= high:
                findings.append(f"counters: key {key} is {read['out']}, between {low} and {high} are possible: {read}")
    return findings


def sums(steps, moments):
    """The sum of the steps before each moment."""
    found, at, total = {}, 0, 0
    for moment in sorted(moments):
        while at < len(steps) and steps[at][0] < moment:
            total += steps[at][1]
            at += 1
        found[moment] = total
    return found


def batches(operations):
    writes = {one["in"]: one for one in operations if one["op"] == "write"}
    last = {one["op"]: set(one["out"]) for one in operations if one["op"] != "write" and one["to"] is not None}
    first, second = last.get("first", set()), last.get("second", set())
    acknowledged = {number for number, one in writes.items() if one["to"] is not None}
    findings = [f"batches: half of {writes.get(number)}" for number in sorted(first ^ second)]
    findings += [f"batches: lost: {writes[number]}" for number in sorted(acknowledged - (first & second))]
    findings += [f"batches: {number} was never sent" for number in sorted((first | second) - writes.keys())]
    return findings


def bank(operations):
    findings = []
    for read in operations:
        if read["op"] != "read" or read["to"] is None:
            continue
        if len(read["out"]) != ACCOUNTS or sum(read["out"]) != SUM or min(read["out"]) < 0:
            findings.append(f"bank: {read}")
    return findings


AUDITS = {"registers": registers, "sets": sets, "counters": counters, "batches": batches, "bank": bank, "appends": appends}
