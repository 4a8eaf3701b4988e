"""The judges of histories that are not linearizable by contract, and what each promises. Each returns its findings, a sentence each.

Registers: a QUORUM read that begins after a QUORUM write was acknowledged shows it or a newer one, and no read shows less than a
read that ended before it began (blocking read repair). What it shows was asked for before the read ended, and both columns are of one write.
Sets: the same for each element: what was added is there until it is removed, what was removed stays away, nothing is invented.
Counters: a read shows no less than what was acknowledged before it began, and no more than what was asked for before it ended.
Bank: each read at SERIAL has the whole sum, and no account is overdrawn. (That its history is linearizable is judged apart.)

An operation whose outcome is unknown may have taken effect at any moment after it began, or never.
"""

import json

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
    """The greatest of the values that were known before a moment. Moments ascend."""

    def __init__(self, known):
        self.known, self.at, self.value, self.why = sorted(known, key=lambda one: one[0]), 0, None, None

    def before(self, moment):
        while self.at < len(self.known) and self.known[self.at][0] < moment:
            _, value, why = self.known[self.at]
            if self.value is None or value > self.value:
                self.value, self.why = value, why
            self.at += 1
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
    changes = [one for one in operations if one["op"] != "read"]
    acknowledged = Floor([(one["to"], one["in"], one) for one in changes if one["to"] is not None])
    seen = []
    reads = sorted((one for one in operations if one["op"] == "read" and one["to"] is not None), key=lambda one: one["from"])
    for read in reads:
        floor = acknowledged.before(read["from"])
        if read["out"]:
            value, twin = read["out"]
            origin = writes.get(value)
            if origin is None or origin["from"] > read["to"]:
                findings.append(f"registers: nobody wrote what is read: {read}")
                continue
            if twin != str(value):
                findings.append(f"registers: half of a write: {read}")
            stamp = value
        else:
            # the oldest deletion that could explain it; without any, nothing was ever written
            able = [one["in"] for one in deletes if one["from"] < read["to"] and (floor is None or one["in"] >= floor)]
            stamp = min(able, default=None)
        if floor is not None and (stamp is None or stamp < floor):
            findings.append(f"registers: acknowledged and not seen: {acknowledged.why}; {read}")
        seen.append((read["to"], stamp if stamp is not None else 0, read))
    return findings + backwards(seen)


def backwards(seen):
    """Reads that show less than a read that ended before."""
    findings, floor = [], Floor(seen)
    for _, stamp, read in sorted(seen, key=lambda one: one[2]["from"]):
        before = floor.before(read["from"])
        # what a read without a row shows is only bounded from below
        if before is not None and read["out"] and stamp < before:
            findings.append(f"registers: a read goes back: {floor.why}; {read}")
    return findings


def sets(operations):
    findings = []
    for of_key in by_key(operations).values():
        findings += one_set(of_key)
    return findings


def one_set(operations):
    added = {one["in"]: one for one in operations if one["op"] == "add"}
    removed = {one["in"]: one for one in operations if one["op"] == "remove"}
    findings, first_seen, first_gone = [], {}, {}
    reads = [one for one in operations if one["op"] == "read" and one["to"] is not None]
    for read in sorted(reads, key=lambda one: one["to"]):
        elements = set(read["out"])
        if len(elements) != len(read["out"]):
            findings.append(f"sets: an element twice: {short(read)}")
        for element in elements:
            if element not in added or added[element]["from"] > read["to"]:
                findings.append(f"sets: element {element} was never added: {short(read)}")
            elif gone(removed.get(element), read):
                findings.append(f"sets: element {element} is back: {removed[element]}; {short(read)}")
            elif element in first_gone and first_gone[element]["to"] < read["from"]:
                findings.append(f"sets: element {element} is back: {short(first_gone[element])}; {short(read)}")
        for element, add in added.items():
            if element in elements:
                first_seen.setdefault(element, read)
                continue
            remove = removed.get(element)
            may_be_gone = remove is not None and remove["from"] < read["to"]
            told = add["to"] is not None and add["to"] < read["from"]
            shown = element in first_seen and first_seen[element]["to"] < read["from"]
            if (told or shown) and not may_be_gone:
                findings.append(f"sets: element {element} is lost: {add}; {short(read)}")
            if (told or shown) and may_be_gone:
                first_gone.setdefault(element, read)
    return findings


def gone(remove, read):
    return remove is not None and remove["to"] is not None and remove["to"] < read["from"]


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


def bank(operations):
    findings = []
    for read in operations:
        if read["op"] != "read" or read["to"] is None:
            continue
        if len(read["out"]) != ACCOUNTS or sum(read["out"]) != SUM or min(read["out"]) < 0:
            findings.append(f"bank: {read}")
    return findings


AUDITS = {"registers": registers, "sets": sets, "counters": counters, "bank": bank}
