"""What two servers answered to one step, whether that is the same, and a short name for each sort of difference."""

import collections
import re
import struct

import deliberate

CLOCK = (1_750_000_000_000_000, 3_000_000_000_000_000)
"""Write timestamps of the servers' own clocks, as conditional statements have them: not compared."""
NAME = re.compile(r"\b[kcsvtfun]\d+\b|\"V \d+\"|\bV \d+\b")
NUMBER = re.compile(r"-?\b\d[\d.eE+-]*\b")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]*")


CLOCK_HEX = re.compile("00000008000[6-9a][0-9a-f]{12}")
CLOCK_TEXT = re.compile(rb"\b1(?:7[1-9]|[89]\d)\d{13}\b")
"""Such a timestamp among those of a collection's elements, and in JSON; those that requests give begin with 170."""
LEGACY = "'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'"
"""What functions of a timeuuid give there (docs/compatibility.md)."""
NANS = {"double": (b"\x7f\xf8" + bytes(6), b"\xff\xf8" + bytes(6)), "float": (b"\x7f\xc0\0\0", b"\xff\xc0\0\0")}
"""The sign of a NaN that a function gives hangs on whether a Java machine has compiled it yet."""
SIGNATURES = re.compile(r"\((known type|can be matched by following) signatures: .*\)")
"""Cassandra lists functions in the order of a hash table."""


MISTAKES = collections.Counter()
"""Pairs of errors where each server has named another mistake of a statement."""


def text_of(text):
    return SIGNATURES.sub("(…)", " ".join(text.split()))


def value(data, ty):
    if data is None:
        return None
    if ty in NANS and data in NANS[ty]:
        return NANS[ty][0].hex()
    if ty == "bigint" and len(data) == 8 and CLOCK[0] < struct.unpack(">q", data)[0] < CLOCK[1]:
        return "clock"
    if ty == "list<bigint>":
        return CLOCK_HEX.sub("00000008clock", data.hex())
    if ty == "text" and CLOCK_TEXT.search(data):
        data = CLOCK_TEXT.sub(b"clock", data)
    return data.hex()


def plain(answer):
    """An answer as it is compared and recorded: JSON's types only."""
    kind = answer["kind"]
    found = {"kind": kind}
    # of a ring of both kinds: whether a Helenus was the coordinator
    if answer.get("by_ours"):
        found["by_ours"] = True
    if "warnings" in answer:
        found["warnings"] = [text_of(warning) for warning in answer["warnings"]]
    if kind == "error":
        found["code"] = f"{answer['code']:04x}"
        found["text"] = text_of(answer["text"])
    elif kind == "rows":
        types = [column[2] for column in answer["columns"]]
        found["columns"] = [[*column[:2], column[2].replace(LEGACY, "timeuuid")] for column in answer["columns"]]
        found["rows"] = [[value(data, ty) for data, ty in zip(row, types)] for row in answer["rows"]]
        found["more"] = answer["paging_state"].hex() if answer.get("paging_state") is not None else None
    elif kind == "prepared":
        markers = answer["markers"]
        found["markers"], found["keys"] = markers["columns"], markers["keys"]
        found["result"] = [[*column[:2], column[2].replace(LEGACY, "timeuuid")] for column in answer["result"]["columns"] or []] or None
        found["id"] = answer["id"].hex()
    elif kind in ("keyspace", "change", "broken"):
        found.update({key: answer[key] for key in answer if key != "kind"})
    return found


def difference(cassandra, helenus, step, schema=None):
    """The sort of the first difference between two lists of plain answers, or None."""
    step = {**step, "schema": schema}
    if deliberate.found_earlier(cassandra, helenus):
        return None
    for ours, theirs in zip(helenus, cassandra):
        found = of_answer(theirs, ours, step)
        if found:
            return found
        if theirs["kind"] != ours["kind"]:
            return None
        if deliberate.another_mistake(theirs, ours):
            MISTAKES[brief(theirs), brief(ours)] += 1
            return None
    return None if len(cassandra) == len(helenus) or deliberate.pages(step, cassandra, helenus) else "another number of answers"


def of_answer(theirs, ours, step):
    if theirs == ours or deliberate.reason(theirs, ours, step) or deliberate.another_mistake(theirs, ours):
        return None
    if theirs["kind"] != ours["kind"]:
        return f"{brief(theirs)} || {brief(ours)}"
    for key in theirs.keys() | ours.keys():
        if theirs.get(key) != ours.get(key):
            if theirs["kind"] == "error":
                return f"{brief(theirs)} || {brief(ours)}"
            if key == "warnings":
                return f"warnings {skeleton(str(theirs.get(key)))} || {skeleton(str(ours.get(key)))}"
            return f"{theirs['kind']} {key}: {verb(step)}{features(step, theirs, ours, key)}"
    return None


def verb(step):
    return step["text"].split(" ", 1)[0].upper()


def features(step, theirs, ours, key):
    if key in ("markers", "columns", "result"):
        pairs = zip(theirs.get(key) or [], ours.get(key) or [])
        return " " + "; ".join(f"{skeleton(str(a))} || {skeleton(str(b))}" for a, b in pairs if a != b)
    if key == "rows":
        found = [word for word in ("GROUP BY", "ORDER BY", "PER PARTITION", "ALLOW", "DISTINCT", "JSON", "token(", "CONTAINS", " IN ", "CAST", " IF ", " ANN OF ", "similarity") if word in step["text"]]
        a, b = theirs["rows"], ours["rows"]
        what = "count" if len(a) != len(b) else "order" if sorted(map(str, a)) == sorted(map(str, b)) else "values"
        return f" {what} {found}"
    return ""


def brief(answer):
    return f"{answer['code']} {skeleton(answer['text'])}" if answer["kind"] == "error" else answer["kind"]


def skeleton(text):
    """A text without what is particular to one statement."""
    return NUMBER.sub("0", NAME.sub("x", QUOTED.sub("'…'", text)))[:180]
