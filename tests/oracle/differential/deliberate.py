"""What may differ, each with its reason. Everything else is a mistake in Helenus.

An entry is a function of Cassandra's answer, ours and the step; the text that it stands beside says why. Those that change what a
user gets are in docs/compatibility.md, under the words in brackets.

What is not made by the generator at all, for the same reason: deletions in counter tables (a counter that was deleted and is written
again), JSON for compact tables without a value column (INSERT … JSON into a table with COMPACT STORAGE), collections in descending
clustering columns (a set or map bound to a descending clustering column), INSERT with a TTL that ends within the run (a row whose INSERT had a
TTL that has ended), times to live and old timestamps under views (materialized views), times to live under a legacy index (its entries live
by the servers' clocks, not by the requests'), ranges of inet and CONTAINS on frozen collections beside a storage-attached index (SAI: inet,
SAI: CONTAINS), views of compact tables without a value column (a view of a table with COMPACT STORAGE), legacy indexes of compact
tables without clustering columns (an index on a column of a table with COMPACT STORAGE). Not compared: the id of
the columns of a result (names and types are).
"""

import json
import re
import struct


def same_code(theirs, ours, code):
    return theirs["kind"] == ours["kind"] == "error" and theirs["code"] == ours["code"] == code


def failed_inside(theirs):
    """An exception of Java's that nobody meant to throw, or a write that died of one."""
    return theirs["kind"] == "error" and theirs["code"] in ("0000", "1300", "1500")


def fields_of_udt(text):
    """The fields of literals of user types, which Cassandra spells in the order of a hash table."""
    return sorted(re.split(r"[{}, ]+", text))


def similarities(answer):
    """The similarities that an answer of a SELECT of the nearest rows has, in its order."""
    return [struct.unpack(">f", bytes.fromhex(row[0]))[0] for row in answer["rows"]]


def finds_nearer(theirs, ours, step):
    """Whether each of our rows is at least as near as the one that Cassandra has at its place, and we have as many or more."""
    if " ANN OF " not in step["text"] or not theirs["kind"] == ours["kind"] == "rows" or len(theirs["columns"]) != 1:
        return False
    if any(row[0] is None or len(row[0]) != 8 for row in theirs["rows"] + ours["rows"]) or len(theirs["rows"]) > len(ours["rows"]):
        return False
    return all(a <= b + 1e-6 for a, b in zip(similarities(theirs), similarities(ours)))


OF_CONDITIONS = ("Invalid 'unset' value in condition", "Invalid null value in condition", "Invalid comparison with null for operator", "Invalid null value for ")
"""What may be wrong with a condition of IF when it is looked at."""


def stops_at_a_condition(theirs, ours):
    """Whether one server has found a condition that does not hold, and the other a mistake in another one, or both a mistake."""
    refused = [one for one in (theirs, ours) if one["kind"] == "error" and one["text"].startswith(OF_CONDITIONS)]
    others = [one for one in (theirs, ours) if one not in refused]
    return bool(refused) and all(one["kind"] == "rows" and one["rows"] and one["rows"][0][0] == "00" for one in others)


def is_applied(answer):
    """Whether a conditional statement was applied; None: the answer is another one."""
    shown = answer["kind"] == "rows" and answer["columns"] and answer["columns"][0][1] == "[applied]"
    return answer["rows"][0][0] == "01" if shown and answer["rows"] else None


def finds_more(theirs, ours):
    """Whether Cassandra's rows are ours and others."""
    return theirs["kind"] == ours["kind"] == "rows" and len(theirs["rows"]) > len(ours["rows"]) and all(row in theirs["rows"] for row in ours["rows"])


def finds_fewer(theirs, ours):
    """Whether Cassandra's rows are some of ours."""
    return theirs["kind"] == ours["kind"] == "rows" and len(theirs["rows"]) < len(ours["rows"]) and all(row in ours["rows"] for row in theirs["rows"])


def has_equal_decimals(answer):
    """Whether the rows have the decimal 1.00 within a value."""
    return "000000050000000264" in json.dumps(answer["rows"])


SMALL_OF_ONE = re.compile("00000005000000000100000002[0-9a-f]{4}")
"""An element of a map whose key is the decimal 1, with a smallint as its value."""

SMALL_OF_ONE_IN_JSON = re.compile("2231(2e3030)?223a20(2d)?(3[0-9])+")
"""The same in JSON: "1.00": -7."""


def of_one_decimal(answer):
    """An answer in which 1.00 is written as 1, and -1 of a varint in one byte: each is equal to the other. Of two such keys of a map
    either value may be kept."""
    text = json.dumps(answer).replace("0000000264", "0000000001").replace('"ffffffff"', '"ff"')
    return SMALL_OF_ONE_IN_JSON.sub("one", SMALL_OF_ONE.sub("one", text))


def has_less_to_come(theirs, ours):
    """Whether Cassandra ends where there are rows left, with some of our rows or none."""
    return theirs["kind"] == ours["kind"] == "rows" and theirs["more"] is None and ours["more"] is not None and all(
        row in ours["rows"] for row in theirs["rows"]
    )


def is_empty_page(answer):
    return answer["kind"] == "rows" and not answer["rows"]


def is_cut(step):
    """Whether a LIMIT or pages cut the answer off."""
    return " LIMIT " in step["text"] or step.get("page_size") not in (None, 5000)


REASONS = [
    (
        "NOT IN and BETWEEN are ours (docs/compatibility.md: BETWEEN, NOT IN)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["code"] == "2000" and re.search(" (NOT IN|BETWEEN) ", step["text"]) is not None
        and re.search("at input '(NOT|BETWEEN)'", theirs["text"]) is not None,
    ),
    (
        "a vector that cannot be indexed is taken there where a later value hides it (docs/compatibility.md: SAI on vectors: a write)",
        lambda theirs, ours, step: theirs["kind"] == "void" and ours["kind"] == "error" and ours["text"].startswith(("non-finite value", "Zero vectors cannot")),
    ),
    (
        "of two calls with arguments of wrong types either is named first",
        lambda theirs, ours, step: same_code(theirs, ours, "2200")
        and all(one["text"].startswith("Invalid call to function ") and "none of its type signatures match" in one["text"] for one in (theirs, ours))
        and theirs["text"].split()[4] != ours["text"].split()[4],
    ),
    (
        "the timestamp of a batch of no statements is not looked at there",
        lambda theirs, ours, step: theirs["kind"] == "void" and ours["kind"] == "error" and ours["text"] == "Invalid null value of timestamp"
        and re.match(r"BEGIN (UNLOGGED |COUNTER )?BATCH USING TIMESTAMP \S+ +APPLY BATCH$", step["text"]) is not None,
    ),
    (
        "a search for the nearest misses rows there, or gives others, once vectors were changed (docs/compatibility.md: ANN after updates)",
        finds_nearer,
    ),
    (
        "an equality of a vector beside the whole key and an index is not looked at there (docs/compatibility.md: a vector compared with =)",
        lambda theirs, ours, step: " ANN OF " not in step["text"] and re.search(r"\be\d+ = ", step["text"]) is not None and finds_more(theirs, ours),
    ),
    (
        "rows that an equality of a vector leaves out count for LIMIT and pages there, beside an index (docs/compatibility.md: a vector compared with =)",
        lambda theirs, ours, step: " ANN OF " not in step["text"] and re.search(r"\b\S+ = (\[|\?|:)", step["text"]) is not None
        and "ALLOW FILTERING" in step["text"] and is_cut(step) and (finds_fewer(theirs, ours) or has_less_to_come(theirs, ours)),
    ),
    (
        "a key column of vectors compared with = where its index would have to answer (docs/compatibility.md: a key column of vectors)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("Use of ANN OF in an ORDER BY clause requires")
        and " ANN OF " not in step["text"],
    ),
    (
        "a hexadecimal constant for a tinyint of other than one byte (docs/compatibility.md)",
        lambda theirs, ours, step: ours["kind"] == "error" and ours["text"].startswith("Expected 1 byte for a tinyint (") and "0x" in step["text"],
    ),
    (
        "CAST of a view's column to its own type (docs/compatibility.md)",
        lambda theirs, ours, step: theirs["kind"] == "error" and ours["kind"] in ("rows", "prepared")
        and theirs["text"].startswith("Invalid call to function system.cast_as_") and re.search(r" FROM w\d", step["text"]) is not None,
    ),
    (
        "an equality of a tuple or a frozen collection beside an attached index compares bytes there, of which decimals may have several (docs/compatibility.md: "
        "SAI: = of a tuple)",
        lambda theirs, ours, step: step["text"].startswith("SELECT") and re.search(r"\b\S+ = (\(|\[|\{|\?|:)", step["text"]) is not None and " WHERE " in step["text"]
        and finds_fewer(theirs, ours) and has_equal_decimals(ours),
    ),
    (
        "IF compares the values of a map by the type of its keys there (docs/compatibility.md: IF on an entry of a map)",
        lambda theirs, ours, step: re.search(r"\bIF\b.*\w\[", step["text"], re.S) is not None and None not in (is_applied(theirs), is_applied(ours))
        and is_applied(theirs) != is_applied(ours),
    ),
    (
        "where no row is asked for, pages of nothing may end with a paging state there (docs/compatibility.md: pages of partitions)",
        lambda theirs, ours, step: " IN ()" in step["text"] and is_empty_page(theirs) and is_empty_page(ours),
    ),
    (
        "CONTAINS on a frozen collection of decimals, filtered: 1 is not 1.00 there (docs/compatibility.md: CONTAINS on a frozen collection)",
        lambda theirs, ours, step: " CONTAINS " in step["text"] and theirs["kind"] == ours["kind"] == "rows" and (has_equal_decimals(ours) or has_equal_decimals(theirs))
        and (finds_fewer(theirs, ours) or is_cut(step)),
    ),
    (
        "an index on a static column finds nothing there where clustering columns are restricted (docs/compatibility.md: an index on a static column)",
        lambda theirs, ours, step: re.search(r"\bs\d+(\[\S+\])? (=|<|>|CONTAINS)", step["text"]) is not None and re.search(r"\bc\d+\)? (=|<|>|IN)", step["text"]) is not None
        and "ALLOW FILTERING" not in step["text"] and theirs["kind"] == ours["kind"] == "rows" and not theirs["rows"] and len(ours["rows"]) > 0,
    ),
    (
        "rows that an equality of a vector leaves out end an aggregate over pages there (docs/compatibility.md: a vector compared with =)",
        lambda theirs, ours, step: " ANN OF " not in step["text"] and re.search(r"\b\S+ = (\[|\?|:)", step["text"]) is not None
        and "ALLOW FILTERING" in step["text"] and is_cut(step) and re.search(r"^SELECT (JSON )?\S*(min|max|count|sum|avg|g\d+)\(", step["text"], re.I) is not None
        and theirs["kind"] == ours["kind"] == "rows" and len(theirs["rows"]) == len(ours["rows"]) == 1,
    ),
    (
        "of decimals that are equal, 1 and 1.00, either may be kept: those of one literal stand in a hash table there, and merges keep one of them",
        lambda theirs, ours, step: of_one_decimal(theirs) == of_one_decimal(ours),
    ),
    (
        "WHERE of a view that an index of the base answers (docs/compatibility.md: the WHERE of a view)",
        lambda theirs, ours, step: step["text"].startswith("CREATE MATERIALIZED VIEW") and " IN (" in step["text"] and theirs["kind"] == "error"
        and theirs["text"] == "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
    ),
    (
        "a literal of a user type as an argument of an overloaded function (docs/compatibility.md: refused there)",
        lambda theirs, ours, step: theirs["kind"] == "error" and "{f0:" in step["text"]
        and (theirs["text"].startswith("Undefined column name f") or theirs["text"].startswith("Type error: (") and "cannot be passed as argument" in theirs["text"]),
    ),
    (
        "conditions of IF stand in a hash table there; what is wrong with one behind a false one is not found (docs/compatibility.md: IF with several "
        "conditions)",
        lambda theirs, ours, step: re.search(r" IF .* AND ", step["text"], re.S) is not None and stops_at_a_condition(theirs, ours),
    ),
    (
        "bytes that are no tuple, as a constant (docs/compatibility.md: a constant for a tuple)",
        lambda theirs, ours, step: theirs["kind"] in ("void", "rows") and ours["kind"] == "error" and "= 0x" in step["text"]
        and ours["text"].startswith(("Not enough bytes to read", "Invalid remaining data after end of tuple")),
    ),
    (
        "a map as an argument counts as a column that is not static there (docs/compatibility.md: only static columns)",
        lambda theirs, ours, step: theirs["kind"] in ("rows", "prepared") and ours["kind"] == "error" and re.search(r"[(,] *\{", step["text"]) is not None
        and ours["text"] == "Cannot restrict clustering columns when selecting only static columns",
    ),
    (
        "an empty key beside an index, where several replicas are asked (docs/compatibility.md: an empty key)",
        lambda theirs, ours, step: theirs["kind"] == "rows" and not theirs["rows"] and ours["kind"] == "error" and ours["text"] == "Key may not be empty"
        and step["text"].startswith("SELECT"),
    ),
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
        lambda theirs, ours, step: "DISTINCT" in step["text"] and "GROUP BY" in step["text"] and theirs["kind"] == ours["kind"] == "rows" and is_cut(step),
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
        and (sorted(map(str, theirs["rows"])) == sorted(map(str, ours["rows"])) or is_cut(step) and len(theirs["rows"]) == len(ours["rows"])),
    ),
    (
        "a vector that is not finite, or of zeros, is refused when it is sought, also where there is nothing to search",
        lambda theirs, ours, step: " ANN OF " in step["text"] and ours["kind"] == "error"
        and (ours["text"].startswith("non-finite value") or ours["text"].startswith("Zero vectors cannot") and theirs["kind"] == "rows" and not theirs["rows"]),
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
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and 'system."_' in theirs["text"]
        and ours["text"].startswith(theirs["text"].split('system."_')[0]) and theirs["text"].startswith(("LIKE restriction", "Unsupported \"")),
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


def may_leave_apart(theirs, ours):
    """Whether both refuse a write that Cassandra may have done in part (docs/compatibility.md: SAI on vectors: a write; where Cassandra
    fails inside): what follows over the same rows may differ."""
    return any(failed_inside(a) or failed_inside(b) or is_applied(a) != is_applied(b) for a, b in zip(theirs, ours))


def another_mistake(theirs, ours):
    """Whether both refuse, each for another reason (docs/compatibility.md: a statement with several mistakes). Texts that begin alike
    are about one mistake, and are compared."""
    return same_code(theirs, ours, "2200") and theirs["text"].split()[:3] != ours["text"].split()[:3]


def found_earlier(theirs, ours):
    """Whether we refuse a statement when it is prepared that Cassandra refuses when it is executed: for the same constant, or for another
    mistake."""
    if len(theirs) != 2 or len(ours) != 1 or theirs[0]["kind"] != "prepared":
        return False
    nulls = "Invalid null value in condition for column "
    of_nulls = same_code(theirs[1], ours[0], "2200") and theirs[1]["text"].startswith(nulls) and ours[0]["text"].startswith(nulls)
    return theirs[1] == ours[0] or of_nulls or another_mistake(theirs[1], ours[0])


def pages(step, theirs, ours):
    """Whether the number of pages may differ: DISTINCT with GROUP BY, as above; a page that ends there where rows are left."""
    if "DISTINCT" in step["text"] and "GROUP BY" in step["text"] or " IN ()" in step["text"] and all(map(is_empty_page, theirs + ours)):
        return True
    return len(theirs) < len(ours) and has_less_to_come(theirs[-1], ours[len(theirs) - 1]) and reason(theirs[-1], ours[len(theirs) - 1], step) is not None


def reason(theirs, ours, step):
    return next((why for why, applies in REASONS if applies(theirs, ours, step)), None)
