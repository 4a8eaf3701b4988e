"""What may differ, each with its reason. Everything else is a mistake in Helenus.

An entry is a function of Cassandra's answer, ours and the step, which has the seed's schema under "schema"; the text that it stands beside
says why. Those that change what a user gets are in docs/compatibility.md, under the words in brackets. An entry goes by the answers where
they tell of the behaviour, by the types of the columns that the statement compares where they do not. A run ends with the entries that were
used, each with the first seed that needed it. A seed beside an entry is one that needed it; entries without were not met by seeds 5008 to 5383.

What is not made by the generator at all, for the same reason: a NaN as the key of a partition that a function gave (its sign hangs on whether
a Java machine has compiled the function yet; seed 5251 before that), deletions in counter tables (a counter that was deleted and is written
again), JSON for compact tables without a value column (INSERT … JSON into a table with COMPACT STORAGE), collections in descending clustering
columns (a set or map bound to a descending clustering column), INSERT with a TTL that ends within the run (a row whose INSERT had a TTL that
has ended), times to live and old timestamps under views (materialized views), which are those of all other statements where some are
conditional: no conditional statements where a view has the key of its base and leaves out columns (seed 3653 before that), views whose
partition key has decimals that are no key of the base's partitions (materialized views; seed 5174 before that), elements of one literal that
are equal decimals (of equal decimals; seeds 3133, 3366, 3576 and 3662 before that), times to live under a legacy index (its entries live by
the servers' clocks, not by the requests'), ranges of inet and CONTAINS on frozen collections beside a storage-attached index (SAI: inet, SAI:
CONTAINS), views of compact tables without a value column (a view of a table with COMPACT STORAGE), legacy indexes of compact tables without
clustering columns (an index on a column of a table with COMPACT STORAGE). Not compared: the id of the columns of a result (names and types
are).
"""

import json
import re
import struct

import values


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


OF_CONDITIONS = ("Invalid 'unset' value in condition", "Invalid null value in condition", "Invalid comparison with null for operator", "Invalid comparison with an empty ", "Invalid null value for ")
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


def one_of_equals(data, ty):
    """A value as all that are equal to it are spelled: a decimal without zeros at its end, a varint in the fewest bytes. Within other types 1
    is written for 1.00."""
    if not data or ty not in ("decimal", "varint"):
        return data and "decimal" in ty and data.replace("0000000264", "0000000001") or data
    scale, unscaled = (data[:8], data[8:]) if ty == "decimal" else ("", data)
    scale, unscaled = (int.from_bytes(bytes.fromhex(part), "big", signed=True) for part in (scale, unscaled))
    while unscaled and unscaled % 10 == 0 and ty == "decimal":
        scale, unscaled = scale - 1, unscaled // 10
    return f"{unscaled} {scale if unscaled else 0}"


def with_one_of_equals(answer):
    if answer["kind"] != "rows":
        return answer
    types = [column[2] for column in answer["columns"]]
    return {**answer, "rows": [[one_of_equals(data, ty) for data, ty in zip(row, types)] for row in answer["rows"]], "more": (answer["more"] or "").replace("0000000264", "0000000001")}


def has_less_to_come(theirs, ours):
    """Whether Cassandra ends where there are rows left, with some of our rows or none."""
    return theirs["kind"] == ours["kind"] == "rows" and theirs["more"] is None and ours["more"] is not None and all(
        row in ours["rows"] for row in theirs["rows"]
    )


def table_of(step):
    """The table or view that a SELECT reads. None: the step is another statement, or its schema is not at hand."""
    found = re.match(r"SELECT .*? FROM (\w+)", step["text"], re.S)
    schema = step.get("schema")
    return next((table for table in [*schema.tables, *schema.views] if table.name == found.group(1)), None) if found and schema else None


RELATION = re.compile(r"(\"V \d+\"|\b[a-z]\d+)(\[[^\]]*\])? (=|<=|>=|<|>|CONTAINS KEY|CONTAINS|IN)(?= |\()")


def compared(step, *operators):
    """The columns that the WHERE of a SELECT compares by one of the operators."""
    table, where = table_of(step), step["text"].partition(" WHERE ")[2]
    if table is None:
        return []
    names = {found.group(1) for found in RELATION.finditer(where) if found.group(3) in operators}
    return [column for column in table.columns if column.name in names]


def equals_a_vector(step):
    """Whether a SELECT compares a vector with =, beside a condition that an attached index of the table may answer."""
    of_vector = any(column.type.name == "vector" for column in compared(step, "="))
    return of_vector and " ANN OF " not in step["text"] and has_attached_index(step)


def has_legacy_index(step):
    table = table_of(step)
    return table is not None and any(not index.attached and index.table is table for index in step["schema"].indexes)


def has_attached_index(step):
    table = table_of(step)
    return table is not None and any(index.attached and index.table is table for index in step["schema"].indexes)


def has_static_index(step, columns):
    return any(column.kind == "static" and any(index.column is column for index in step["schema"].indexes) for column in columns)


def has_both_indexes(step, column):
    """Whether a column has an index of legacy kind and an attached one."""
    return len({index.attached for index in step["schema"].indexes if index.column is column}) == 2


def names_whole_key(step):
    table = table_of(step)
    keys = [column.name for column in table.of("partition", "clustering")] if table else []
    where = step["text"].partition(" WHERE ")[2]
    return bool(keys) and all(re.search(rf"\b{name}\b", where) for name in keys)


def has_frozen_decimals(column):
    """A value of the column is one of several parts, which has decimals in it."""
    return bool(column.type.inner) and not column.type.multi and values.has_within(column.type, "decimal")


def has_decimals_in_elements(column):
    """An element, key or value of the collection has several parts, and decimals among them."""
    return column.type.multi and any(part.inner and values.has_within(part, "decimal") for part in column.type.inner)


def descends_in_base(step):
    """Whether a column of the partition key of the view that is read descends in its base."""
    table = table_of(step)
    base = getattr(table, "base", None)
    descending = {column.name for column in base.columns if column.descending} if base else set()
    return lambda column: column.kind == "partition" and column.name in descending


def is_of_descending_view(step):
    table = table_of(step)
    return table is not None and any(map(descends_in_base(step), table.columns))


def without_casts(answer):
    """An answer in which a column is called by its name where it is called by its CAST."""
    return re.sub(r"cast\((\w+) as \w+\)", r"\1", json.dumps({**answer, "id": None}))


def is_of_other_entries(step):
    """Whether an IF looks at an entry of a map whose keys have another type than its values."""
    names = set(re.findall(r"(\"V \d+\"|\b[a-z]\d+)\[", step["text"].partition(" IF ")[2]))
    columns = [column for table in step["schema"].tables for column in table.columns] if step.get("schema") else []
    return any(column.name in names and column.type.name == "map" and column.type.inner[0] != column.type.inner[1] for column in columns)


def is_empty_page(answer):
    return answer["kind"] == "rows" and not answer["rows"]


def is_cut(step):
    """Whether a LIMIT or pages cut the answer off."""
    return " LIMIT " in step["text"] or step.get("page_size") not in (None, 5000)


REASONS = [
    (
        # seed 5009
        "NOT IN and BETWEEN are ours (docs/compatibility.md: BETWEEN, NOT IN)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["code"] == "2000" and re.search(" (NOT IN|BETWEEN) ", step["text"]) is not None
        and re.search("at input '(NOT|BETWEEN)'", theirs["text"]) is not None,
    ),
    (
        # seed 5107
        "a vector that cannot be indexed is taken there where a later value hides it (docs/compatibility.md: SAI on vectors: a write)",
        lambda theirs, ours, step: theirs["kind"] == "void" and ours["kind"] == "error" and ours["text"].startswith(("non-finite value", "Zero vectors cannot")),
    ),
    (
        # seed 5013
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
        # seed 5107
        "a search for the nearest misses rows there, or gives others, once vectors were changed (docs/compatibility.md: ANN after updates)",
        finds_nearer,
    ),
    (
        "an equality of a vector beside the whole key and an index is not looked at there (docs/compatibility.md: a vector compared with =)",
        lambda theirs, ours, step: equals_a_vector(step) and names_whole_key(step) and finds_more(theirs, ours),
    ),
    (
        "rows that an equality of a vector leaves out count for LIMIT and pages there, beside an index (docs/compatibility.md: a vector compared with =)",
        lambda theirs, ours, step: equals_a_vector(step) and "ALLOW FILTERING" in step["text"] and is_cut(step)
        and (finds_fewer(theirs, ours) or has_less_to_come(theirs, ours)),
    ),
    (
        "a key column of vectors compared with = where its index would have to answer (docs/compatibility.md: a key column of vectors)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("Use of ANN OF in an ORDER BY clause requires")
        and " ANN OF " not in step["text"],
    ),
    (
        # seed 5159
        "a hexadecimal constant for a tinyint of other than one byte (docs/compatibility.md)",
        lambda theirs, ours, step: theirs["kind"] != "error" and ours["kind"] == "error"
        and ours["text"].startswith("Expected 1 byte for a tinyint (") and "0x" in step["text"],
    ),
    (
        "CAST of a view's column to its own type (docs/compatibility.md)",
        lambda theirs, ours, step: theirs["kind"] == "error" and ours["kind"] in ("rows", "prepared")
        and theirs["text"].startswith("Invalid call to function system.cast_as_") and re.search(r" FROM w\d", step["text"]) is not None,
    ),
    (
        # seed 5074
        "CAST of a view's column to its own type has a name of its own there (docs/compatibility.md: CAST of a view's column)",
        lambda theirs, ours, step: is_of_descending_view(step) and "CAST(" in step["text"] and theirs["kind"] == ours["kind"] in ("rows", "prepared")
        and without_casts(theirs) == without_casts(ours),
    ),
    (
        "an equality of a tuple or a frozen collection beside an attached index compares bytes there, of which decimals may have several (docs/compatibility.md: "
        "SAI: = of a tuple)",
        lambda theirs, ours, step: any(map(has_frozen_decimals, compared(step, "="))) and has_attached_index(step)
        and finds_fewer(theirs, ours) and has_equal_decimals(ours),
    ),
    (
        # seed 5217
        "CONTAINS of a tuple or a frozen collection compares bytes there where an attached index answers it (docs/compatibility.md: SAI: = of a tuple)",
        lambda theirs, ours, step: any(map(has_decimals_in_elements, compared(step, "CONTAINS", "CONTAINS KEY"))) and has_attached_index(step)
        and theirs["kind"] == ours["kind"] == "rows" and (finds_fewer(theirs, ours) or is_cut(step)),
    ),
    (
        # seed 5122
        "of a legacy index and one of SAI on a column of decimals the legacy one answers there, for which 1 is not 1.00 (docs/compatibility.md: an index of "
        "SAI and a legacy or SASI one)",
        lambda theirs, ours, step: any(has_both_indexes(step, column) and values.has_within(column.type, "decimal") for column in compared(step, "="))
        and finds_fewer(theirs, ours),
    ),
    (
        "IF compares the values of a map by the type of its keys there (docs/compatibility.md: IF on an entry of a map)",
        lambda theirs, ours, step: is_of_other_entries(step) and None not in (is_applied(theirs), is_applied(ours))
        and is_applied(theirs) != is_applied(ours),
    ),
    (
        # seed 5009
        "where no row is asked for, pages of nothing may end with a paging state there (docs/compatibility.md: pages of partitions)",
        lambda theirs, ours, step: " IN ()" in step["text"] and is_empty_page(theirs) and is_empty_page(ours),
    ),
    (
        # seed 5362
        "CONTAINS on a frozen collection of decimals, filtered: 1 is not 1.00 there (docs/compatibility.md: CONTAINS on a frozen collection)",
        lambda theirs, ours, step: any(map(has_frozen_decimals, compared(step, "CONTAINS", "CONTAINS KEY"))) and theirs["kind"] == ours["kind"] == "rows"
        and (has_equal_decimals(ours) or has_equal_decimals(theirs)) and (finds_fewer(theirs, ours) or is_cut(step)),
    ),
    (
        # seed 5009
        "an index on a static column finds nothing there where clustering columns are restricted (docs/compatibility.md: an index on a static column)",
        lambda theirs, ours, step: has_static_index(step, compared(step, "=", "<", "<=", ">", ">=", "CONTAINS", "CONTAINS KEY"))
        and re.search(r"\bc\d+\)? (=|<|>|IN)", step["text"]) is not None and "ALLOW FILTERING" not in step["text"]
        and theirs["kind"] == ours["kind"] == "rows" and not theirs["rows"] and len(ours["rows"]) > 0,
    ),
    (
        "rows that an equality of a vector leaves out end an aggregate over pages there (docs/compatibility.md: a vector compared with =)",
        lambda theirs, ours, step: equals_a_vector(step) and "ALLOW FILTERING" in step["text"] and is_cut(step)
        and re.search(r"^SELECT (JSON )?\S*(min|max|count|sum|avg|g\d+)\(", step["text"], re.I) is not None
        and theirs["kind"] == ours["kind"] == "rows" and len(theirs["rows"]) == len(ours["rows"]) == 1,
    ),
    (
        # seed 5140
        "of decimals and varints that are equal, 1 and 1.00, merges keep one or the other, as the sources happen to be flushed",
        lambda theirs, ours, step: with_one_of_equals(theirs) == with_one_of_equals(ours),
    ),
    (
        "WHERE of a view that an index of the base answers (docs/compatibility.md: the WHERE of a view)",
        lambda theirs, ours, step: step["text"].startswith("CREATE MATERIALIZED VIEW") and " IN (" in step["text"] and theirs["kind"] == "error"
        and theirs["text"] == "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
    ),
    (
        # seed 5157
        "a literal of a user type as an argument of an overloaded function (docs/compatibility.md: refused there)",
        lambda theirs, ours, step: theirs["kind"] == "error" and "{f0:" in step["text"]
        and (theirs["text"].startswith("Undefined column name f") or theirs["text"].startswith("Type error: (") and "cannot be passed as argument" in theirs["text"]),
    ),
    (
        # seed 5028
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
        # seed 5150
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
        # seed 5272
        "pages of a GROUP BY that end within a deleted range fail in an assertion of the replica there (docs/compatibility.md: GROUP BY with LIMIT)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["code"] == "1300" and ours["kind"] == "rows"
        and " GROUP BY " in step["text"] and is_cut(step),
    ),
    (
        # seed 5247
        "the nearest rows, filtered by a condition that a legacy index answers: Cassandra uses that index, which has no order (docs/compatibility.md: ANN OF "
        "beside a condition on a column that has a legacy index)",
        lambda theirs, ours, step: " ANN OF " in step["text"] and "ALLOW FILTERING" in step["text"] and failed_inside(theirs) and ours["kind"] == "rows"
        and has_legacy_index(step),
    ),
    (
        # seed 5239
        "a literal of a collection as an argument of an overloaded function that another of its forms cannot take (docs/compatibility.md: a literal of a user "
        "type as an argument)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["code"] == "0000" and ours["kind"] in ("rows", "prepared")
        and re.match(r"java.lang.(IllegalArgumentException: Unsupported target type|ClassCastException)", theirs["text"])
        and re.search(r"\bf\d+\([^)]*[\[{]", step["text"]) is not None,
    ),
    (
        # seed 5331
        "pages of filtered rows with a PER PARTITION LIMIT: the key of the partition that a page ended in is null there (docs/compatibility.md: where "
        "Cassandra fails inside)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("java.lang.NullPointerException") and '"key" is null' in theirs["text"]
        and ours["kind"] == "rows" and "PER PARTITION LIMIT" in step["text"] and is_cut(step),
    ),
    (
        # seed 5279
        "CAST of a value without bytes fails there (docs/compatibility.md: where Cassandra fails inside)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("java.lang.IndexOutOfBoundsException") and ours["kind"] == "rows"
        and "CAST(" in step["text"],
    ),
    (
        # seed 5332
        "a key column of vectors compared with = by its index and a LIMIT fails inside there (docs/compatibility.md: a key column of vectors)",
        lambda theirs, ours, step: failed_inside(theirs) and ours["kind"] == "rows" and equals_a_vector(step) and " LIMIT " in step["text"]
        and any(column.type.name == "vector" and column.kind in ("partition", "clustering") for column in compared(step, "=")),
    ),
    (
        # seed 5317
        "an argument that is not set, and a function that throws: either is found first (docs/compatibility.md: a statement with several mistakes)",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "error" and {theirs["code"], ours["code"]} == {"2200", "1400"}
        and re.search(r"\bf\d+\(", step["text"]) is not None,
    ),
    (
        # seed 5237
        "an element of a list that is set in no partition, IN (), is read there (docs/compatibility.md: where Cassandra fails inside)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("java.lang.IndexOutOfBoundsException: Index 0 out of bounds for length 0")
        and ours["kind"] == "void" and (" IN ()" in step["text"] or " IN ?" in step["text"] or " IN :" in step["text"]),
    ),
    (
        # seed 5071
        "Cassandra fails inside, we refuse what was asked (docs/compatibility.md: where Cassandra fails inside)",
        lambda theirs, ours, step: failed_inside(theirs) and ours["kind"] == "error" and not failed_inside(ours),
    ),
    (
        # seed 5009
        "of several mistakes in one statement each server may name another one first",
        lambda theirs, ours, step: step.get("mistakes", 0) > 1 and same_code(theirs, ours, "2200"),
    ),
    (
        # seed 5008
        "the words about wrong JSON are Jackson's there",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and "Could not decode JSON string as a map" in theirs["text"],
    ),
    (
        # seed 5010
        "literals of user types are spelled in another order",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and fields_of_udt(theirs["text"]) == fields_of_udt(ours["text"]),
    ),
    (
        # seed 5074
        "the warning about USE comes once for a statement that is new to the server: an old one may be known to one of them",
        lambda theirs, ours, step: {**theirs, "warnings": None} == {**ours, "warnings": None}
        and all(text.startswith("`USE <keyspace>`") for text in (theirs.get("warnings") or []) + (ours.get("warnings") or [])),
    ),
    (
        # seed 5008
        "an error brings no warnings with it",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "error" and {**theirs, "warnings": None} == {**ours, "warnings": None},
    ),
    (
        "columns restricted twice by tuples are listed in the order of a hash table",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and " ,c" in theirs["text"],
    ),
    (
        # seed 5028
        "Cassandra refuses a paging state that it gave out (docs/compatibility.md: the paging state of GROUP BY and DISTINCT)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["code"] == "000a" and "GROUP BY" in step["text"],
    ),
    (
        # seed 5014
        "a paging state that has no rows left in its partition may name the last row or not",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and {**theirs, "more": ""} == {**ours, "more": ""}
        and str(theirs["more"])[-2:] == str(ours["more"])[-2:] == "00",
    ),
    (
        # seed 5008
        "among the tuples of an IN Cassandra takes an empty value for one that is not set",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("Invalid unset value for column") and ") IN ((" in step["text"],
    ),
    (
        # seed 5045
        "DISTINCT with GROUP BY: Cassandra reads more than a page and counts one row of each partition",
        lambda theirs, ours, step: "DISTINCT" in step["text"] and "GROUP BY" in step["text"] and theirs["kind"] == ours["kind"] == "rows" and is_cut(step)
        and all(a == b for a, b in zip(theirs["rows"], ours["rows"])),
    ),
    (
        # seed 5028
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
        # seed 5010
        "an operation of constants for a descending clustering column (docs/compatibility.md: refused as ambiguous there)",
        lambda theirs, ours, step: theirs["kind"] == "error" and theirs["text"].startswith("Ambiguous '"),
    ),
    (
        # seed 5074
        "IN on the partition key of a view whose base has the column in descending order: the partitions come in that order there",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and any(map(descends_in_base(step), compared(step, "IN")))
        and (sorted(map(str, theirs["rows"])) == sorted(map(str, ours["rows"])) or is_cut(step) and len(theirs["rows"]) == len(ours["rows"])),
    ),
    (
        # seed 5008
        "a vector that is not finite, or of zeros, is refused when it is sought, also where there is nothing to search",
        lambda theirs, ours, step: " ANN OF " in step["text"] and ours["kind"] == "error"
        and (ours["text"].startswith("non-finite value") or ours["text"].startswith("Zero vectors cannot") and theirs["kind"] == "rows" and not theirs["rows"]),
    ),
    (
        # seed 5201
        "a null among the values of an IN that filters: nothing is found there (docs/compatibility.md)",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and not theirs["rows"] and "ALLOW FILTERING" in step["text"]
        and re.search(r" IN \([^)]*(null|\?|:n)", step["text"]) is not None
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
        # seed 5370
        "a change of no partition at all, IN (): what else is wrong with it is not looked at there",
        lambda theirs, ours, step: theirs["kind"] == "void" and ours["kind"] == "error" and " IN ()" in step["text"],
    ),
    (
        "toJson and to_json share their instances there, and the name that was asked for first is the column's",
        lambda theirs, ours, step: json.dumps(theirs).replace("system.to_json(", "system.tojson(") == json.dumps(ours).replace("system.to_json(", "system.tojson("),
    ),
    (
        # seed 5015
        "the paging state of a read of several partitions may stand at the next of them or behind the last row",
        lambda theirs, ours, step: theirs["kind"] == ours["kind"] == "rows" and " IN " in step["text"]
        and {**theirs, "more": bool(theirs["more"])} == {**ours, "more": bool(ours["more"])},
    ),
    (
        # seed 5208
        "operations are spelled as calls of functions there",
        lambda theirs, ours, step: same_code(theirs, ours, "2200") and 'system."_' in theirs["text"]
        and ours["text"].startswith(theirs["text"].split('system."_')[0]) and theirs["text"].startswith(("LIKE restriction", "Unsupported \"")),
    ),
    (
        # seed 5102
        "the words of an exception of Java's own differ between its versions (docs/functions.md)",
        lambda theirs, ours, step: same_code(theirs, ours, "1400")
        and any(name in theirs["text"] and name in ours["text"] for name in ("NullPointerException", "StringIndexOutOfBounds", "ClassCastException")),
    ),
    (
        # seed 5008
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
    if "DISTINCT" in step["text"] and "GROUP BY" in step["text"] or " IN ()" in step["text"] and all(is_empty_page(one) for one in theirs + ours if one["kind"] != "prepared"):
        return True
    return len(theirs) < len(ours) and has_less_to_come(theirs[-1], ours[len(theirs) - 1]) and reason(theirs[-1], ours[len(theirs) - 1], step) is not None


USED = {}
"""Of each reason that was needed: how often, and the first step that did, with its answers."""


def reason(theirs, ours, step):
    found = next((why for why, applies in REASONS if applies(theirs, ours, step)), None)
    if found:
        what = f"{found}: {theirs['code']} {theirs['text'][:100]} || {ours.get('text') or ours['kind']}" if failed_inside(theirs) else found
        times, first = USED.get(what, (0, (step, theirs, ours)))
        USED[what] = times + 1, first
    return found
