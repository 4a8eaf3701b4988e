"""What the clients ask: registers, sets, counters and logged batches at QUORUM; compare-and-set registers and a bank by conditional statements.

A workload has its tables, `step`, one operation by one client, and `last`, the reads after the last trouble. Each operation goes
through `client.ask`, which records it. Keys move on as operations go by, so that the history of one key stays short.
Timestamps of plain writes come from the clients and ascend over all of them: what is newer is known without the nodes' clocks.
"""

import itertools
import threading
import time

from cassandra import ConsistencyLevel

KEYSPACE = "misfortune"


class Timestamps:
    """Microseconds, each later than the one before."""

    def __init__(self):
        self.lock, self.last = threading.Lock(), 0

    def next(self):
        with self.lock:
            self.last = max(self.last + 1, time.time_ns() // 1000)
            return self.last


class Workload:
    """What all have: prepared statements, and a number for each operation."""

    tables, statements = (), {}

    def __init__(self, stamps):
        self.stamps, self.numbers, self.prepared = stamps, itertools.count(), {}

    def prepare(self, session):
        for name, (text, level) in self.statements.items():
            statement = session.prepare(text.replace("TABLE", f"{KEYSPACE}.{self.name}"))
            statement.consistency_level = getattr(ConsistencyLevel, level)
            self.prepared[name] = statement


class Registers(Workload):
    """A value in two columns, written and deleted with timestamps; a read shows the newest that was acknowledged, or a newer one."""

    name = "registers"
    tables = ("CREATE TABLE TABLE (key int PRIMARY KEY, v bigint, twin text)",)
    statements = {
        "write": ("INSERT INTO TABLE (key, v, twin) VALUES (?, ?, ?) USING TIMESTAMP ?", "QUORUM"),
        "delete": ("DELETE FROM TABLE USING TIMESTAMP ? WHERE key = ?", "QUORUM"),
        "read": ("SELECT v, twin FROM TABLE WHERE key = ?", "QUORUM"),
    }
    WINDOW, PER_KEY = 12, 60

    def __init__(self, stamps):
        super().__init__(stamps)
        self.most = 0

    def step(self, client, rng):
        key = next(self.numbers) // self.PER_KEY + rng.randrange(self.WINDOW)
        self.most = max(self.most, key)
        chance = rng.random()
        if chance < 0.5:
            return self.read(client, key)
        stamp = self.stamps.next()
        if chance < 0.56:
            return client.ask(self.name, "delete", key, stamp, self.prepared["delete"], (stamp, key))
        return client.ask(self.name, "write", key, stamp, self.prepared["write"], (key, stamp, str(stamp), stamp))

    def read(self, client, key):
        def shape(rows):
            row = rows.one()
            return [row.v, row.twin] if row else []

        return client.ask(self.name, "read", key, None, self.prepared["read"], (key,), shape)

    def last(self, client):
        for key in range(self.most + 1):
            client.insist(lambda key=key: self.read(client, key))


class Sets(Workload):
    """Unique elements, as rows of a partition or in a collection; a read has all that were added before and not removed since.

    An element and its timestamp are drawn together, so that a range that is removed holds only elements with older timestamps.
    """

    name = "sets"
    tables = (
        "CREATE TABLE TABLE (key int, element int, PRIMARY KEY (key, element))",
        "CREATE TABLE TABLE_collection (key int PRIMARY KEY, elements set<int>)",
    )
    statements = {
        "add": ("INSERT INTO TABLE (key, element) VALUES (?, ?) USING TIMESTAMP ?", "QUORUM"),
        "remove": ("DELETE FROM TABLE USING TIMESTAMP ? WHERE key = ? AND element = ?", "QUORUM"),
        "remove_range": ("DELETE FROM TABLE USING TIMESTAMP ? WHERE key = ? AND element >= ? AND element <= ?", "QUORUM"),
        "read": ("SELECT element FROM TABLE WHERE key = ?", "QUORUM"),
        "least": ("SELECT element FROM TABLE WHERE key = ? LIMIT ?", "QUORUM"),
        "greatest": ("SELECT element FROM TABLE WHERE key = ? ORDER BY element DESC LIMIT ?", "QUORUM"),
        "add_in": ("UPDATE TABLE_collection USING TIMESTAMP ? SET elements = elements + ? WHERE key = ?", "QUORUM"),
        "remove_in": ("UPDATE TABLE_collection USING TIMESTAMP ? SET elements = elements - ? WHERE key = ?", "QUORUM"),
        "read_in": ("SELECT elements FROM TABLE_collection WHERE key = ?", "QUORUM"),
    }
    PER_KEY, PAGE, RANGE = 120, 25, 4

    def __init__(self, stamps):
        super().__init__(stamps)
        self.elements, self.most, self.added, self.drawing = itertools.count(), 0, {}, threading.Lock()

    def prepare(self, session):
        super().prepare(session)
        # results of several pages, each of which another node may answer
        self.prepared["read"].fetch_size = self.PAGE

    def step(self, client, rng):
        key = next(self.numbers) // self.PER_KEY
        self.most = max(self.most, key)
        chance, place = rng.random(), f"{key}{rng.choice(['', ' in'])}"
        added = self.added.setdefault(place, [])
        if chance < 0.2:
            return self.read(client, place)
        if chance < 0.35 and not place.endswith("in"):
            return self.read_some(client, place, rng.choice(["least", "greatest"]), rng.randint(1, 8))
        if chance < 0.45 and added:
            element = added.pop(rng.randrange(len(added)))
            if rng.random() < 0.3 and not place.endswith("in"):
                return self.remove_range(client, place, element, element + rng.randrange(self.RANGE))
            return self.remove(client, place, element)
        return self.add(client, place, added)

    def add(self, client, place, added):
        key = int(place.split()[0])
        with self.drawing:
            element, stamp = next(self.elements), self.stamps.next()
        if place.endswith("in"):
            told = client.ask(self.name, "add", place, element, self.prepared["add_in"], (stamp, {element}, key))
        else:
            told = client.ask(self.name, "add", place, element, self.prepared["add"], (key, element, stamp))
        if told:
            added.append(element)
        return told

    def remove(self, client, place, element):
        key, stamp = int(place.split()[0]), self.stamps.next()
        given = [element, element]
        if place.endswith("in"):
            return client.ask(self.name, "remove", place, given, self.prepared["remove_in"], (stamp, {element}, key))
        return client.ask(self.name, "remove", place, given, self.prepared["remove"], (stamp, key, element))

    def remove_range(self, client, place, first, last):
        """All elements from `first` to `last` that have been drawn."""
        with self.drawing:
            stamp, drawn = self.stamps.next(), next(self.elements)
        last = min(last, drawn)
        return client.ask(self.name, "remove", place, [first, last], self.prepared["remove_range"], (stamp, int(place), first, last))

    def read(self, client, place):
        key = int(place.split()[0])
        if place.endswith("in"):
            shape = lambda rows: sorted(next((row.elements or [] for row in rows), []))  # noqa: E731
            return client.ask(self.name, "read", place, None, self.prepared["read_in"], (key,), shape)
        return client.ask(self.name, "read", place, None, self.prepared["read"], (key,), lambda rows: [row.element for row in rows])

    def read_some(self, client, place, which, limit):
        """The least or the greatest elements: a replica that lacks a removal answers with too few that are alive."""
        return client.ask(self.name, which, place, limit, self.prepared[which], (int(place), limit), lambda rows: [row.element for row in rows])

    def last(self, client):
        for key in range(self.most + 1):
            for place in (f"{key}", f"{key} in"):
                client.insist(lambda place=place: self.read(client, place))


class Counters(Workload):
    """Increments; a read has all that were acknowledged before, and no more than were asked for."""

    name = "counters"
    tables = ("CREATE TABLE TABLE (key int PRIMARY KEY, n counter)",)
    statements = {
        "add": ("UPDATE TABLE SET n = n + ? WHERE key = ?", "QUORUM"),
        "read": ("SELECT n FROM TABLE WHERE key = ?", "QUORUM"),
    }
    KEYS = 6

    def step(self, client, rng):
        key = rng.randrange(self.KEYS)
        if rng.random() < 0.4:
            return self.read(client, key)
        step = rng.choice([1, 2, 10])
        return client.ask(self.name, "add", key, step, self.prepared["add"], (step, key))

    def read(self, client, key):
        return client.ask(self.name, "read", key, None, self.prepared["read"], (key,), lambda rows: next((row.n for row in rows), 0))

    def last(self, client):
        for key in range(self.KEYS):
            client.insist(lambda key=key: self.read(client, key))


class Batches(Workload):
    """Logged batches over two partitions of two tables: in the end both have it, or neither."""

    name = "batches"
    tables = (
        "CREATE TABLE TABLE (key int, number int, PRIMARY KEY (key, number))",
        "CREATE TABLE TABLE_twin (key int, number int, PRIMARY KEY (key, number))",
    )
    statements = {
        "write": (
            "BEGIN BATCH INSERT INTO TABLE (key, number) VALUES (?, ?); INSERT INTO TABLE_twin (key, number) VALUES (?, ?); APPLY BATCH",
            "QUORUM",
        ),
        "first": ("SELECT number FROM TABLE", "QUORUM"),
        "second": ("SELECT number FROM TABLE_twin", "QUORUM"),
    }
    KEYS = 50
    # a batch whose coordinator has died is replayed by another node: the log is looked through every ten seconds
    REPLAYED_SECONDS = 90

    def step(self, client, _):
        number = next(self.numbers)
        values = (number % self.KEYS, number, (number + 1) % self.KEYS, number)
        return client.ask(self.name, "write", 0, number, self.prepared["write"], values)

    def read(self, client):
        def numbers(rows):
            return sorted(row.number for row in rows)

        first = client.ask(self.name, "first", 0, None, self.prepared["first"], (), numbers)
        second = client.ask(self.name, "second", 0, None, self.prepared["second"], (), numbers)
        return None if first is None or second is None else (first, second)

    def last(self, client):
        until = time.monotonic() + self.REPLAYED_SECONDS
        while time.monotonic() < until:
            told = self.read(client)
            if told and told[0] == told[1]:
                return
            time.sleep(1)
        client.insist(lambda: self.read(client))


class Swaps(Workload):
    """Compare-and-set registers: IF NOT EXISTS, IF v = ?, and reads at SERIAL."""

    name = "swaps"
    tables = ("CREATE TABLE TABLE (key int PRIMARY KEY, v int)",)
    statements = {
        "create": ("INSERT INTO TABLE (key, v) VALUES (?, ?) IF NOT EXISTS", "QUORUM"),
        "swap": ("UPDATE TABLE SET v = ? WHERE key = ? IF v = ?", "QUORUM"),
        "drop": ("DELETE FROM TABLE WHERE key = ? IF v = ?", "QUORUM"),
        "read": ("SELECT v FROM TABLE WHERE key = ?", "SERIAL"),
    }
    WINDOW, PER_KEY = 2, 40

    def __init__(self, stamps):
        super().__init__(stamps)
        self.values, self.seen, self.most = itertools.count(1), {}, 0

    def step(self, client, rng):
        key = next(self.numbers) // self.PER_KEY + rng.randrange(self.WINDOW)
        self.most = max(self.most, key)
        now, chance = self.seen.get(key), rng.random()
        if chance < 0.3:
            return self.read(client, key)
        if now is None:
            value = next(self.values)
            return self.swap(client, key, None, value, "create", (key, value))
        if chance < 0.36:
            return self.swap(client, key, now, None, "drop", (key, now))
        value = next(self.values)
        return self.swap(client, key, now, value, "swap", (value, key, now))

    def swap(self, client, key, old, new, name, values):
        def shape(rows):
            row = rows.one()
            # the value that stood in the way, where the statement was not applied
            return {"applied": row[0], "found": None if row[0] else getattr(row, "v", None)}

        told = client.ask(self.name, "swap", key, [old, new], self.prepared[name], values, shape)
        if told:
            self.seen[key] = new if told["applied"] else told["found"]
        return told

    def read(self, client, key):
        told = client.ask(self.name, "read", key, None, self.prepared["read"], (key,), lambda rows: [row.v for row in rows])
        if told is not None:
            self.seen[key] = told[0] if told else None
        return told

    def last(self, client):
        for key in range(self.most + 1):
            client.insist(lambda key=key: self.read(client, key))


class Bank(Workload):
    """Transfers between accounts of one partition, each a conditional batch; the sum stays."""

    name = "bank"
    tables = ("CREATE TABLE TABLE (key int, account int, balance int, PRIMARY KEY (key, account))",)
    ACCOUNTS, EACH, PER_KEY = 4, 100, 80
    UPDATE = "UPDATE TABLE SET balance = ? WHERE key = ? AND account = ? IF balance = ?;"
    statements = {
        # older than every ballot, whatever the clocks say
        "open": ("INSERT INTO TABLE (key, account, balance) VALUES (?, ?, ?) USING TIMESTAMP 1", "ALL"),
        "transfer": (f"BEGIN BATCH {UPDATE} {UPDATE} APPLY BATCH", "QUORUM"),
        "read": ("SELECT account, balance FROM TABLE WHERE key = ?", "SERIAL"),
    }
    KEYS = 200

    def __init__(self, stamps):
        super().__init__(stamps)
        self.seen = {}

    def prepare(self, session):
        super().prepare(session)
        for key in range(self.KEYS):
            for account in range(self.ACCOUNTS):
                session.execute(self.prepared["open"], (key, account, self.EACH))

    def step(self, client, rng):
        key = next(self.numbers) // self.PER_KEY % self.KEYS
        balances = self.seen.get(key)
        if balances is None or rng.random() < 0.3:
            return self.read(client, key)
        giver, taker = rng.sample(range(self.ACCOUNTS), 2)
        if not balances[giver]:
            return self.read(client, key)
        amount = rng.randint(1, balances[giver])
        given = {"giver": giver, "taker": taker, "amount": amount, "had": [balances[giver], balances[taker]]}
        values = (balances[giver] - amount, key, giver, balances[giver], balances[taker] + amount, key, taker, balances[taker])
        told = client.ask(self.name, "transfer", key, given, self.prepared["transfer"], values, lambda rows: bool(rows.one()[0]))
        if told:
            after = list(balances)
            after[giver] -= amount
            after[taker] += amount
            self.seen[key] = after
        else:
            # what is there has to be read first
            self.seen.pop(key, None)
        return told

    def read(self, client, key):
        def shape(rows):
            return [balance for _, balance in sorted((row.account, row.balance) for row in rows)]

        told = client.ask(self.name, "read", key, None, self.prepared["read"], (key,), shape)
        if told is not None and len(told) == self.ACCOUNTS:
            self.seen[key] = told
        return told

    def last(self, client):
        for key in range(min(self.KEYS, next(self.numbers) // self.PER_KEY + 1)):
            client.insist(lambda key=key: self.read(client, key))


class Appends(Workload):
    """Lists of one partition, to some of which a transaction appends; a read shows all of them. cycles.py judges.

    At SERIAL a transaction is a conditional batch. At another level it is a batch of one partition without conditions, whose
    elements stand in the order of the coordinators' clocks: no order is promised then, and the judge says what that comes to.
    """

    name = "appends"
    tables = ("CREATE TABLE TABLE (key int, item int, elements list<int>, PRIMARY KEY (key, item))",)
    ITEMS, PER_KEY, KEYS = 3, 60, 300
    level = "SERIAL"

    def __init__(self, stamps):
        super().__init__(stamps)
        self.elements = itertools.count(1)
        condition, write = (" IF EXISTS", "QUORUM") if self.level == "SERIAL" else ("", self.level)
        one = f"UPDATE TABLE SET elements = elements + ? WHERE key = ? AND item = ?{condition};"
        self.statements = {
            "open": ("INSERT INTO TABLE (key, item) VALUES (?, ?) USING TIMESTAMP 1", "ALL"),
            "read": ("SELECT item, elements FROM TABLE WHERE key = ?", self.level),
            **{f"append{count}": (f"BEGIN BATCH {one * count} APPLY BATCH", write) for count in range(1, self.ITEMS + 1)},
        }

    def prepare(self, session):
        super().prepare(session)
        for key in range(self.KEYS):
            for item in range(self.ITEMS):
                session.execute(self.prepared["open"], (key, item))

    def step(self, client, rng):
        key = min(next(self.numbers) // self.PER_KEY, self.KEYS - 1)
        if rng.random() < 0.45:
            return self.read(client, key)
        given = [[item, next(self.elements)] for item in sorted(rng.sample(range(self.ITEMS), rng.randint(1, self.ITEMS)))]
        values = [value for item, element in given for value in ([element], key, item)]
        shape = (lambda rows: bool(rows.one()[0])) if self.level == "SERIAL" else (lambda rows: True)
        return client.ask(self.name, "append", key, given, self.prepared[f"append{len(given)}"], values, shape)

    def read(self, client, key):
        def shape(rows):
            return [[row.item, list(row.elements or [])] for row in rows]

        return client.ask(self.name, "read", key, None, self.prepared["read"], (key,), shape)

    def last(self, client):
        for key in range(min(self.KEYS, next(self.numbers) // self.PER_KEY + 1)):
            client.insist(lambda key=key: self.read(client, key))


def appends_at(level):
    """The workload at another level than SERIAL, to see what the judge says of it."""
    return type("Appends", (Appends,), {"level": level})


PLAIN, CONDITIONAL = (Registers, Sets, Counters, Batches), (Swaps, Bank, Appends)
