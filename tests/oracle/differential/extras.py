"""What stands beside the tables of a schema: views, functions, aggregates and indexes. Some are made before the first statement, some
between statements, so that what is there already is built; some are dropped again. Both servers may refuse one: then there is none.
"""

import functions
import indexes
import views
from functions import Function
from indexes import Index


def draw(rng, schema):
    """Puts extras into `schema.extras` and `schema.late`, and says which tables may have views."""
    found = []
    for number, table in enumerate(schema.tables):
        if rng.random() < 0.45:
            table.viewed = True
            drawn = [views.random_view(rng, f"w{number}{at}", table) for at in range(rng.choice([1, 1, 2]))]
            # deliberate.py: decimals in the partition key of a view
            drawn = [view for view in drawn if not view.moves]
            table.drifts = any(view.drifts for view in drawn)
            # deliberate.py: views of compact tables without a value column
            found += drawn if table.of("regular") or not table.compact else []
        if rng.random() < 0.6:
            drawn = [indexes.random_index(rng, f"{number}{at}", table) for at in range(rng.choice([1, 2, 2, 3, 4]))]
            # deliberate.py: legacy indexes of compact tables without clustering columns
            found += [index for index in drawn if index.attached or table.of("clustering") or not table.compact]
    if rng.random() < 0.6:
        found += [functions.random_function(rng, number, schema.udts) for number in range(rng.choice([1, 2, 3, 4]))]
    if rng.random() < 0.35:
        for number in range(rng.choice([1, 2])):
            found += functions.random_aggregate(rng, number, schema.udts)
    for table in schema.tables:
        if table.viewed or any(isinstance(extra, Index) and extra.table is table and not extra.attached for extra in found):
            table.lasting = True
            table.options = [option for option in table.options if "live" not in option]
    for extra in found:
        # parts of an aggregate stay in their order
        late = not isinstance(extra, Function) and rng.random() < 0.3
        (schema.late if late else schema.extras).append(extra)


def step(text):
    return {"text": text, "prepared": False}


def made(schema, extra):
    """Enters what both servers have taken."""
    if isinstance(extra, Function):
        schema.functions.append(extra)
    elif isinstance(extra, Index):
        schema.indexes.append(extra)
    else:
        schema.views.append(extra)


def drop(rng, schema):
    """Something that is there, and the statement that drops it; None where there is nothing."""
    there = [*schema.functions, *schema.indexes, *schema.views]
    if not there:
        return None
    extra = rng.choice(there)
    return extra, extra.drop() if hasattr(extra, "drop") else f"DROP MATERIALIZED VIEW {extra.name}"


def gone(schema, extra):
    for kind in (schema.functions, schema.indexes, schema.views):
        if extra in kind:
            kind.remove(extra)
