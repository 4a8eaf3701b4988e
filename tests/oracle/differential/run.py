"""Running a seed: its schema, its steps, on both servers, and what differs."""

import random
import re
import time

import compare
import deliberate
import extras
import wire
from schemas import random_schema
from selects import select
from statements import Writer
from writes import write

PAGES = 20
"""A result of more pages is read so far."""
BUILT_SECONDS = 20
"""So long an index or a view may take until it is built."""
BUILDS = re.compile("CREATE (CUSTOM )?(INDEX|MATERIALIZED)", re.I)
REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


class Found:
    """A difference: its sort, the schema, the steps up to the one that shows it, both answers."""

    def __init__(self, sort, seed, schema, steps, cassandra, helenus):
        self.sort, self.seed, self.schema, self.steps = sort, seed, schema, steps
        self.cassandra, self.helenus = cassandra, helenus


def both(peers, message):
    waiting = [peer.send(message) for peer in peers]
    return [wait() for wait in waiting]


def each(peers, messages):
    waiting = [peer.send(message) if message else None for peer, message in zip(peers, messages)]
    return [wait() if wait else None for wait in waiting]


def perform(peers, step):
    """The plain answers of each peer to a step: of its preparation, then of its pages."""
    answers = [[] for _ in peers]
    options = {key: step.get(key) for key in ("values", "page_size", "timestamp", "now", "serial", "consistency") if step.get(key) is not None}
    prepared = None
    if step["prepared"]:
        prepared = both(peers, wire.prepare(step["text"]))
        for found, answer in zip(answers, prepared):
            found.append(compare.plain(answer))
        if any(answer["kind"] != "prepared" for answer in prepared):
            return answers
    states = [None] * len(peers)
    columns = [answer["result"]["columns"] for answer in prepared] if prepared else [None] * len(peers)
    for page in range(PAGES):
        if page and not any(states):
            break
        messages = []
        for at in range(len(peers)):
            given = {**options, "paging_state": states[at]}
            wanted = page == 0 or states[at]
            messages.append((wire.execute(prepared[at], given) if prepared else wire.query(step["text"], given)) if wanted else None)
        for at, answer in enumerate(each(peers, messages)):
            states[at] = None
            if answer is None:
                continue
            if answer["kind"] == "rows":
                answer["columns"] = answer["columns"] or columns[at]
                states[at] = answer.get("paging_state")
            answers[at].append(compare.plain(answer))
    if BUILDS.match(step["text"]):
        for node in (node for peer in peers for node in peer.nodes()):
            wait_built(node)
    return answers


def wait_built(peer):
    """Until the indexes and views of the peer's keyspace are built."""
    ask = lambda text: {bytes(row[0]) for row in peer.ask(wire.query(text, {})).get("rows", [])}
    wanted = ask(f"SELECT index_name FROM system_schema.indexes WHERE keyspace_name = '{peer.keyspace}'")
    views = ask(f"SELECT view_name FROM system_schema.views WHERE keyspace_name = '{peer.keyspace}'")
    until = time.monotonic() + BUILT_SECONDS
    while time.monotonic() < until:
        built = ask(f"SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{peer.keyspace}'")
        viewed = ask(f"SELECT view_name FROM system.built_views WHERE keyspace_name = '{peer.keyspace}'")
        if wanted <= built and views <= viewed:
            return
        time.sleep(0.02)


def next_step(rng, schema, number):
    w = Writer(rng, schema, number)
    if w.chance(0.5):
        pages = {"page_size": w.pick([1, 2, 3, 5, 7, 100])} if w.chance(0.4) else {"page_size": 5000}
        return w.finish(select(w), **pages)
    return w.finish(write(w))


def create(peers, keyspace):
    both(peers, wire.query(f"DROP KEYSPACE IF EXISTS {keyspace}", {}))
    both(peers, wire.query(f"CREATE KEYSPACE {keyspace} {REPLICATION}", {}))
    for peer in peers:
        peer.use(keyspace)


def build(peers, schema, ran=lambda step, answers: None):
    """Makes the schema; the answers that differ, or None. False when it is refused by both."""
    create(peers, schema.keyspace)
    for statement in schema.statements():
        step = {"text": statement, "prepared": False}
        answers = perform(peers, step)
        ran(step, answers[0])
        sort = compare.difference(*answers, step, schema)
        if sort:
            return Found(sort, None, schema, [step], *answers)
        if answers[0][0]["kind"] == "error":
            return False
    return None


def add(peers, schema, extra, ran=lambda step, answers: None):
    """Makes a view, function or index. Its step, the answers, and what differs of them."""
    step = extras.step(extra.text)
    answers = perform(peers, step)
    ran(step, answers[0])
    if all(one[0]["kind"] == "change" for one in answers):
        extras.made(schema, extra)
    return step, answers, compare.difference(*answers, step, schema)


def truncate(peers, schema):
    """Empties the tables; whether both servers have done so."""
    answers = [answer for table in schema.tables for answer in both(peers, wire.query(f"TRUNCATE {table.name}", {}))]
    return all(answer["kind"] != "error" for answer in answers)


def run_seed(peers, seed, keyspace, count, report, ran, ended=lambda schema: None):
    """Runs `count` statements; each difference goes to `report`, each step with its answers to `ran`, the schema at the end to `ended`."""
    rng = random.Random(seed)
    schema = random_schema(rng, keyspace)
    extras.draw(rng, schema)
    found = build(peers, schema, ran)
    if found is False:
        return 0
    if found:
        found.seed = seed
        report(found)
        return 1
    for extra in schema.extras:
        step, answers, sort = add(peers, schema, extra, ran)
        if sort:
            report(Found(sort, seed, schema, [step], *answers))
        if len({one[0]["kind"] for one in answers}) > 1:
            return 1
    steps = []
    for number in range(count):
        if schema.late and rng.random() < 0.02 or rng.random() < 0.001:
            if not change(peers, seed, schema, rng, steps, report, ran):
                return number
        step = {**next_step(rng, schema, number), "seed": seed}
        steps.append(step)
        cassandra, helenus = perform(peers, step)
        ran(step, cassandra)
        sort = compare.difference(cassandra, helenus, step, schema)
        if sort:
            report(Found(sort, seed, schema, list(steps), cassandra, helenus))
        apart = [answer["kind"] for answer in cassandra] != [answer["kind"] for answer in helenus]
        if compare.verb(step) != "SELECT" and (sort or apart or deliberate.may_leave_apart(cassandra, helenus)):
            if not truncate(peers, schema):
                return number + 1
            steps = []
    ended(schema)
    both(peers, wire.query(f"DROP KEYSPACE {keyspace}", {}))
    return count


def change(peers, seed, schema, rng, steps, report, ran):
    """Makes what was held back, or drops what is there; whether both servers have the same now."""
    if schema.late:
        step, answers, sort = add(peers, schema, schema.late.pop(), ran)
    else:
        found = extras.drop(rng, schema)
        if found is None:
            return True
        step = extras.step(found[1])
        answers = perform(peers, step)
        ran(step, answers[0])
        sort = compare.difference(*answers, step, schema)
        if answers[0][0]["kind"] == "change":
            extras.gone(schema, found[0])
    steps.append(step)
    if sort:
        report(Found(sort, seed, schema, list(steps), *answers))
    return len({one[0]["kind"] for one in answers}) == 1


def still_differs(peers, found, steps):
    """Whether these steps over an empty schema show the same sort of difference at their end."""
    if build(peers, found.schema) is not None:
        return False
    for extra in found.schema.extras:
        perform(peers, extras.step(extra.text))
    for step in steps:
        answers = perform(peers, step)
    if compare.difference(*answers, steps[-1], found.schema) != found.sort:
        return False
    found.steps, (found.cassandra, found.helenus) = steps, answers
    return True


def shrink(peers, found, attempts=40):
    """Leaves out steps as long as the difference stays."""
    if len(found.steps) == 1 and not still_differs(peers, found, found.steps):
        return
    *before, last = found.steps
    before = [step for step in before if compare.verb(step) != "SELECT"]
    for extra in list(found.schema.extras):
        found.schema.extras.remove(extra)
        if not still_differs(peers, found, [*before, last]):
            found.schema.extras.append(extra)
    if still_differs(peers, found, [last]):
        return
    if not still_differs(peers, found, [*before, last]):
        return
    size = len(before) // 2
    while size and attempts > 0:
        at = 0
        while at < len(before) and attempts > 0:
            attempts -= 1
            fewer = before[:at] + before[at + size :]
            if still_differs(peers, found, [*fewer, last]):
                before = fewer
            else:
                at += size
        size //= 2
