"""The Python driver as a client of a ring: what tests/ring/drivers asks for, a line of JSON an answer.

    ring_client.py ADDRESS PORT
"""

import json
import sys
import time

from cassandra.cluster import Cluster
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy

SELECT = "SELECT k FROM ring_{}.t WHERE k = ?"
PATIENCE = 60


def main():
    address, port = sys.argv[1], int(sys.argv[2])
    policy = TokenAwarePolicy(DCAwareRoundRobinPolicy(local_dc="datacenter1"))
    cluster = Cluster([address], port=port, load_balancing_policy=policy)
    session = cluster.connect()
    session.default_timeout = 20
    prepared = {name: session.prepare(SELECT.format(name)) for name in ("one", "three")}

    def up():
        return sorted(host.address for host in cluster.metadata.all_hosts() if host.is_up)

    def coordinator(statement, key):
        future = session.execute_async(statement, [key])
        future.result()
        return future.coordinator_host.address

    def awaited(address, is_up):
        until = time.monotonic() + PATIENCE
        while (address in up()) != is_up and time.monotonic() < until:
            time.sleep(0.05)
        return (address in up()) == is_up

    def schema(name):
        session.execute(f"CREATE TABLE ring_three.{name} (k int PRIMARY KEY)")
        return cluster.control_connection.wait_for_schema_agreement()

    verbs = {
        "hosts": lambda: up(),
        "aware": lambda count: [coordinator(prepared["one"], key) for key in range(int(count))],
        "spread": lambda count: sorted({coordinator(prepared["three"], key) for key in range(int(count))}),
        "schema": schema,
        "up": lambda address: awaited(address, True),
        "down": lambda address: awaited(address, False),
    }
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            answer = verbs[verb](*words)
        except Exception as error:  # the script shows it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    cluster.shutdown()


main()
