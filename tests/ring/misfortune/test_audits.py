"""Each judge finds what it is for, in histories made by hand, and is content with a right one."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from misfortune import audits  # noqa: E402


def one(op, begun, ended, given=None, out=None, key=0):
    return {"client": 0, "op": op, "key": key, "in": given, "out": out, "from": begun, "to": ended}


def read(begun, ended, out):
    return one("read", begun, ended, out=out)


WRITES = [one("write", 0, 10, 1), one("write", 20, 30, 2)]
UNKNOWN = [one("write", 0, 10, 1), one("write", 20, None, 2)]
ADDS = [one("add", 0, 10, 1), one("add", 20, None, 2)]
MANY = [one("add", 0, 10, element) for element in (1, 2, 3, 4)]
SENT = [one("write", 0, 10, 1), one("write", 20, None, 2)]
FULL = [100, 100, 100, 100]
# two lists of one partition: the second transaction appends to both
TWO = [one("append", 0, 10, [[0, 1]], True), one("append", 20, 30, [[0, 2], [1, 3]], True)]
APART = [one("append", 0, 50, [[0, 1]], True), one("append", 0, 50, [[1, 2]], True)]


def lists(begun, ended, *elements):
    return read(begun, ended, list(map(list, enumerate(elements))))



RIGHT = [
    ("registers", [*WRITES, read(5, 15, []), read(11, 15, [1, "1"]), read(25, 28, [1, "1"]), read(31, 40, [2, "2"])]),
    # a write without an answer may be seen at any time, or never
    ("registers", [*UNKNOWN, read(40, 50, [1, "1"]), read(60, 70, [2, "2"])]),
    ("registers", [*WRITES, one("delete", 40, None, 3), read(50, 60, [])]),
    # nothing was acknowledged: what is not seen may not have happened yet
    ("registers", [one("write", 0, None, 1), one("delete", 2, None, 2), read(10, 11, []), read(20, 21, [1, "1"])]),
    ("registers", [read(0, 1, []), *WRITES]),
    ("sets", [*ADDS, read(11, 15, [1]), read(40, 50, [1]), read(60, 70, [2, 1])]),
    ("sets", [*ADDS, one("remove", 30, None, [1, 1]), read(40, 50, []), read(51, 60, [2])]),
    ("sets", [*MANY, one("remove", 30, 35, [2, 3]), one("least", 40, 50, 2, [1, 4]), one("greatest", 40, 50, 3, [4, 1])]),
    ("counters", [*ADDS, read(5, 8, 0), read(11, 15, 1), read(40, 50, 3)]),
    ("batches", [*SENT, one("first", 50, 60, out=[1]), one("second", 50, 60, out=[1])]),
    ("batches", [*SENT, one("first", 50, 60, out=[1]), one("first", 70, 80, out=[1, 2]), one("second", 70, 80, out=[1, 2])]),
    ("bank", [read(0, 1, FULL), read(2, 3, [0, 200, 150, 50])]),
    ("appends", [*TWO, lists(11, 15, [1], []), lists(25, 28, [1], []), lists(26, 29, [1, 2], [3]), lists(40, 50, [1, 2], [3])]),
    # without an answer an append may be seen at any later time, or never
    ("appends", [TWO[0], one("append", 20, None, [[0, 2]]), lists(40, 50, [1], []), lists(60, 70, [1, 2], [])]),
    ("appends", [TWO[0], one("append", 20, None, [[0, 2]]), lists(40, 50, [1], [])]),
    ("appends", [*APART, lists(10, 20, [1], []), lists(21, 30, [1], [2])]),
]
WRONG = [
    ("acknowledged and not seen", "registers", [*WRITES, read(31, 40, [1, "1"])]),
    ("acknowledged and not seen", "registers", [*WRITES, read(31, 40, [])]),
    ("acknowledged and not seen", "registers", [*WRITES, one("delete", 40, 50, 3), read(51, 60, [2, "2"])]),
    ("acknowledged and not seen", "registers", [*WRITES, one("delete", 50, None, 3), read(41, 45, [])]),
    ("nobody wrote", "registers", [*WRITES, read(31, 40, [9, "9"])]),
    ("nobody wrote", "registers", [*WRITES, read(11, 15, [2, "2"])]),
    ("half of a write", "registers", [*WRITES, read(31, 40, [2, "1"])]),
    ("goes back", "registers", [*UNKNOWN, read(21, 25, [2, "2"]), read(26, 30, [1, "1"])]),
    ("goes back", "registers", [one("write", 0, None, 1), read(10, 11, [1, "1"]), read(20, 21, [])]),
    ("is lost", "sets", [*ADDS, read(11, 15, [])]),
    ("is lost", "sets", [*ADDS, read(21, 25, [1, 2]), read(26, 30, [1])]),
    ("never added", "sets", [*ADDS, read(11, 15, [1, 7])]),
    ("never added", "sets", [*ADDS, read(11, 15, [1, 2])]),
    ("is back", "sets", [*ADDS, one("remove", 30, 35, [1, 1]), read(40, 50, [1])]),
    ("is back", "sets", [*ADDS, one("remove", 30, None, [1, 1]), read(40, 50, []), read(51, 60, [1])]),
    ("twice", "sets", [*ADDS, read(11, 15, [1, 1])]),
    ("is back", "sets", [*MANY, one("remove", 30, 35, [2, 3]), read(40, 50, [1, 3, 4])]),
    ("is lost", "sets", [*MANY, one("least", 40, 50, 2, [1, 3])]),
    ("is lost", "sets", [*MANY, one("least", 40, 50, 5, [1, 2, 3])]),
    ("is lost", "sets", [*MANY, one("greatest", 40, 50, 2, [4, 2])]),
    ("possible", "counters", [*ADDS, read(11, 15, 0)]),
    ("possible", "counters", [*ADDS, read(11, 15, 2)]),
    ("possible", "counters", [*ADDS, read(40, 50, 4)]),
    ("half of", "batches", [*SENT, one("first", 50, 60, out=[1, 2]), one("second", 50, 60, out=[1])]),
    ("lost", "batches", [*SENT, one("first", 50, 60, out=[2]), one("second", 50, 60, out=[2])]),
    ("lost", "batches", SENT),
    ("never sent", "batches", [*SENT, one("first", 50, 60, out=[1, 3]), one("second", 50, 60, out=[1, 3])]),
    ("bank", "bank", [read(0, 1, [100, 100, 100, 99])]),
    ("bank", "bank", [read(0, 1, [-1, 101, 200, 100])]),
    ("bank", "bank", [read(0, 1, [200, 200])]),
    ("two orders", "appends", [*TWO, lists(40, 50, [1, 2], [3]), lists(60, 70, [2, 1], [3])]),
    ("twice", "appends", [*TWO, lists(40, 50, [1, 2, 1], [3])]),
    ("never appended", "appends", [*TWO, lists(40, 50, [1, 2], [9])]),
    ("was refused", "appends", [one("append", 0, 10, [[0, 1]], False), lists(40, 50, [1])]),
    ("is lost", "appends", [*TWO, lists(40, 50, [1], [3])]),
    # half of a transaction
    ("a cycle of 2", "appends", [*TWO, lists(25, 28, [1, 2], []), lists(40, 50, [1, 2], [3])]),
    # a read that goes back
    ("a cycle of", "appends", [*TWO, lists(21, 22, [1, 2], [3]), lists(23, 24, [1], []), lists(40, 50, [1, 2], [3])]),
    # an acknowledged append that a later read does not show yet
    ("a cycle of 2", "appends", [*TWO, lists(31, 32, [1], []), lists(40, 50, [1, 2], [3])]),
    # two readers see two independent appends in different orders
    ("a cycle of 4", "appends", [*APART, lists(10, 20, [1], []), lists(10, 20, [], [2]), lists(60, 70, [1], [2])]),
    # the order of one list against the order of the clock
    ("a cycle of 2", "appends", [*TWO, lists(40, 50, [2, 1], [3])]),
]


@pytest.mark.parametrize("name, history", RIGHT)
def test_a_right_history_has_no_findings(name, history):
    assert audits.AUDITS[name](history) == []


@pytest.mark.parametrize("words, name, history", WRONG)
def test_a_wrong_history_is_found(words, name, history):
    assert any(words in finding for finding in audits.AUDITS[name](history))
