"""What may differ, each with its reason. Everything else is a mistake in Helenus.

An entry is a function of Cassandra's answer, ours and the step; the text that it stands beside says why. Those that change what a
user gets are in docs/compatibility.md, under the words in brackets.

What is not made by the generator at all, for the same reason: deletions in counter tables (a counter that was deleted and is written
again), JSON for compact tables without a value column (INSERT … JSON into a table with COMPACT STORAGE), collections in descending
clustering columns (a set or map bound to a descending clustering column), INSERT with a TTL that ends within the run (a row whose INSERT had a
TTL that has ended), times to live and old timestamps under views (materialized views), times to live under a legacy index (its entries live
by the servers' clocks, not by the requests'), ranges of inet and CONTAINS on frozen collections beside a storage-attached index (SAI: inet,
SAI: CONTAINS). Not compared: the id of
the columns of a result (names and types are).
"""

import json
import re


def same_code(theirs, ours, code):
    return theirs["kind"] == ours["kind"] == "error" and theirs["code"] == ours["code"] == code


def failed_inside(theirs):
    """An exception of Java's that nobody meant to throw, or a write that died of one."""
    return theirs["kind"] == "error" and theirs["code"] in ("0000", "1300", "1500")


def fields_of_udt(text):
    """The fields of literals of user types, which Cassandra spells in the order of a hash table."""
    return sorted(re.split(r"[{}, ]+", text))


REASONS = [
    (
        "Cassandra fails inside, we refuse what was asked or do it (docs/compatibility.md: where Cassandra fails inside)",
        lambda theirs, ours, step: failed_inside(theirs) and not failed_inside(ours),
    ),
    (
        "of several mistakes in one statement each server may name another one first",
        lambda theirs, ours, step: step.get("mistakes", 0) > 1 and same_code(theirs, ours, "2200"),
    ),
    (
        "the words about wrong JSON are Jackson's there",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and "Could not decode JSON string as a map" in theirs["text"],
    ),
    (
        "literals of user types are spelled in another order",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and fields_of_udt(theirs["text"]) == fields_of_udt(ours["text"]),
    ),
    (
        "the warning about USE comes once for a statement that is new to the server: an old one may be known to one of them",
        lambda theirs, ours, step: {**theirs, "warnings": None} == {**ours, "warnings": None}
        and all(text.startswith("`USE <keyspace>`") for text in (theirs.get("warnings") or []) + (ours.get("warnings") or [])),
    ),
    (
        "an error brings no warnings with it",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "error" and {**theirs, "warnings": None} == {**ours, "warnings": None},
    ),
    (
        "columns restricted twice by tuples are listed in the order of a hash table",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and " ,c" in theirs["text"],
    ),
    (
        "Cassandra refuses a paging state that it gave out (docs/compatibility.md: the paging state of GROUP BY and DISTINCT)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["code"] == "000a" and "GROUP BY" in step["text"],
    ),
    (
        "a paging state that has no rows left in its partition may name the last row or not",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and {**theirs, "more": ""} == {**ours, "more": ""}
        and str(theirs["more"])[-2:] == str(ours["more"])[-2:] == "00",
    ),
    (
        "among the tuples of an IN Cassandra takes an empty value for one that is not set",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("Invalid unset value for column") and ") IN ((" in step["text"],
    ),
    (
        "DISTINCT with GROUP BY: Cassandra reads more than a page and counts one row of each partition",
        lambda theirs, ours, step: "DISTINCT" in step["text"] and "GROUP BY" in step["text"] and theirs["kind"] == ours["kind"] == "rows",
    ),
    (
        "the paging state of GROUP BY and DISTINCT names its place in another way; the rows of the next page are compared",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and re.search("GROUP BY|DISTINCT", step["text"])
        and {**theirs, "more": bool(theirs["more"])} == {**ours, "more": bool(ours["more"])},
    ),
    (
        "the type of min and max of a timeuuid (docs/compatibility.md)",
        lambda theirs, ours, step: json.dumps(theirs).replace("'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'", "timeuuid") == json.dumps(ours),
    ),
    (
        "a constant as a tuple, '1:2', is taken there (docs/compatibility.md: a constant for a tuple)",
        lambda theirs, ours, step: ours["kind"] == "error" and re.search("constant .* of type frozen<tuple", ours["text"]) is not None,
    ),
    (
        "of several static columns that a view may not have, the first in the order of a hash table is named",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and theirs["text"].startswith("Cannot include static column")
        and ours["text"].startswith("Cannot include static column"),
    ),
    (
        "an operation of constants for a descending clustering column (docs/compatibility.md: refused as ambiguous there)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("Ambiguous '"),
    ),
    (
        "IN on the partition key of a view whose base has the column in descending order: the partitions come in that order there",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and " IN " in step["text"] and re.search(r"FROM w\d", step["text"])
        and sorted(map(str, theirs["rows"])) == sorted(map(str, ours["rows"])),
    ),
    (
        "a vector that is not finite is refused when it is sought, also where there is nothing to search",
        lambda theirs, ours, step: " ANN OF " in step["text"] and ours["kind"] == "error" and ours["text"].startswith("non-finite value"),
    ),
    (
        "a null among the values of an IN that filters: nothing is found there (docs/compatibility.md)",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and not theirs["rows"] and " IN " in step["text"]
        and ("null" in step["text"] or any(value is None for value in step.get("values") or [])),
    ),
    (
        "JSON that is no value of a column, or an unset argument of an aggregate: seen there although nothing hangs on it",
        lambda theirs, ours, step: theirs["kind"] == "error" and ours["kind"] == "rows"
        and theirs["text"].startswith(("Error decoding JSON value", "Invalid unset value for argument in call to function g")),
    ),
    (
        "the warning about indexes on vectors comes with every later index of the table there",
        lambda theirs, ours, step: {**theirs, "warnings": None} == {**ours, "warnings": None} and "SAI ANN indexes" in str(theirs.get("warnings")),
    ),
    (
        "a quote in INITCOND cannot be read again there (docs/compatibility.md)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("Failed parsing CQL term") and "INITCOND '" in step["text"],
    ),
    (
        "a change of no partition at all, IN (): what else is wrong with it is not looked at there",
        lambda theirs, ours, step: theirs["kind"] == "void" and ours["kind"] == "error" and " IN ()" in step["text"],
    ),
    (
        "toJson and to_json share their instances there, and the name that was asked for first is the column's",
        lambda theirs, ours, step: json.dumps(theirs).replace("system.to_json(", "system.tojson(") == json.dumps(ours).replace("system.to_json(", "system.tojson("),
    ),
    (
        "the paging state of a read of several partitions may stand at the next of them or behind the last row",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and " IN " in step["text"]
        and {**theirs, "more": bool(theirs["more"])} == {**ours, "more": bool(ours["more"])},
    ),
    (
        "operations are spelled as calls of functions there",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and theirs["text"].startswith("LIKE restriction") and 'system."_' in theirs["text"],
    ),
    (
        "the words of an exception of Java's own differ between its versions (docs/functions.md)",
        lambda theirs, ours, step: same_code(theirs, ours, "1400")
        and any(name in theirs["text"] and name in ours["text"] for name in ("NullPointerException", "StringIndexOutOfBounds", "ClassCastException")),
    ),
    (
        "the words of a syntax error: ours say what was expected at which place, those of Cassandra what its parser generator was about",
        lambda theirs, ours, step: same_code(theirs, ours, "2000"),
    ),
]


def another_mistake(theirs, ours):
    """Whether both refuse, each for another reason (docs/compatibility.md: a statement with several mistakes). Texts that begin alike
    are about one mistake, and are compared."""
    return same_code(theirs, ours, "2200") and theirs["text"].split()[:3] != ours["text"].split()[:3]


def found_earlier(theirs, ours):
    """Whether we refuse a constant when the statement is prepared that Cassandra refuses, with the same error, when it is executed."""
    return len(theirs) == 2 and len(ours) == 1 and theirs[0]["kind"] == "prepared" and theirs[1] == ours[0]


def pages(step):
    """Whether the number of pages may differ (DISTINCT with GROUP BY, as above)."""
    return "DISTINCT" in step["text"] and "GROUP BY" in step["text"]


def reason(theirs, ours, step):
    return next((why for why, applies in REASONS if applies(theirs, ours, step)), None)
