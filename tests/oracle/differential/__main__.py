"""Random schemas and statements on a real Cassandra and on Helenus, answers compared.

Usage: differential CASSANDRA[:PORT] HELENUS[:PORT] [--seed N] [--count N] [--statements N] [--jobs N] [--shrink] [--only SORTS] [--excused REASONS] [--record FILE]

Each seed is a schema and some hundred statements. Differences are shown once a sort, with the schema and the statements needed; a
seed runs again with `--seed N --count 1`. Lists what differs on purpose: deliberate.py.
"""

import argparse
import json
import logging
import re
import threading
import time

import compare
import deliberate
import run
from recorded import Recorder
from wire import Peer

logging.disable(logging.WARNING)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("cassandra")
    parser.add_argument("helenus")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1, help="seeds")
    parser.add_argument("--statements", type=int, default=400, help="of each seed")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--only", help="a pattern: only such sorts are shown")
    parser.add_argument("--sorts", type=int, default=1000, help="at most so many sorts of differences are shown")
    parser.add_argument("--excused", help="a pattern: of such reasons (deliberate.py) the first statement is shown with its answers")
    parser.add_argument("--record", help="write the statements and Cassandra's answers to a file")
    return parser.parse_args()


def peer(name, address):
    host, _, port = address.partition(":")
    return Peer(name, host, int(port or 9042))


class Report:
    """Differences by their sort; the first of each is kept."""

    def __init__(self):
        self.lock = threading.Lock()
        self.first, self.counts = {}, {}

    def __call__(self, found):
        with self.lock:
            known = self.first.get(found.sort)
            if known is None or len(found.steps) < len(known.steps):
                self.first[found.sort] = found
            self.counts[found.sort] = self.counts.get(found.sort, 0) + 1


def show_step(step):
    values = f"  -- {[v if v is None or isinstance(v, str) else v.hex() for v in step['values']]}" if step.get("values") is not None else ""
    more = f"  -- pages of {step['page_size']}" if step.get("page_size") not in (None, 5000) else ""
    return f"  {step['text']};{'  -- prepared' if step['prepared'] else ''}{values}{more}"


def show(found, times):
    print(f"\n=== {times} x {found.sort}\nseed {found.seed}")
    for statement in [*found.schema.statements(), *(extra.text for extra in found.schema.extras)]:
        print(f"  {statement};")
    for step in found.steps[-12:]:
        print(show_step(step))
    for name, text in zip(("Cassandra", "Helenus"), apart(found)):
        print(f"{name:9} {text[:700]}")


def apart(found):
    """What differs of the first answers that do: the fields, of rows the rows."""
    if len(found.cassandra) != len(found.helenus) and found.cassandra[: len(found.helenus)] == found.helenus[: len(found.cassandra)]:
        return [f"{len(answers)} answers" for answers in (found.cassandra, found.helenus)]
    pair = next(((a, b) for a, b in zip(found.cassandra, found.helenus) if a != b), None)
    if pair is None:
        return ["the same", "the same"]
    a, b = pair
    fields = [key for key in {**a, **b} if a.get(key) != b.get(key)]
    if fields == ["rows"] or fields == ["columns"]:
        a, b = a[fields[0]], b[fields[0]]
        rest = [(x, y) for x, y in zip(a, b) if x != y]
        if rest:
            at = a.index(rest[0][0])
            return [f"{len(rows)} {fields[0]}, at {at}: {json.dumps(row, ensure_ascii=False)}" for rows, row in zip((a, b), rest[0])]
        return [f"{len(rows)} {fields[0]}, last {json.dumps(rows[-1:], ensure_ascii=False)}" for rows in (a, b)]
    return [json.dumps({key: one.get(key) for key in fields}, ensure_ascii=False) for one in pair]


def main():
    options = arguments()
    report, recorder = Report(), Recorder() if options.record else None
    seeds = iter(range(options.seed, options.seed + options.count))
    lock, done, begun = threading.Lock(), [0], time.time()

    def work(job):
        peers = [peer("Cassandra", options.cassandra), peer("Helenus", options.helenus)]
        while True:
            with lock:
                seed = next(seeds, None)
            if seed is None:
                break
            ran = recorder.of(seed) if recorder else lambda step, answers: None
            count = run.run_seed(peers, seed, f"fuzz_{job}", options.statements, report, ran)
            with lock:
                done[0] += count
        for one in peers:
            one.close()

    jobs = [threading.Thread(target=work, args=(job,)) for job in range(min(options.jobs, options.count))]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    peers = [peer("Cassandra", options.cassandra), peer("Helenus", options.helenus)]
    wanted = {sort: found for sort, found in report.first.items() if not options.only or re.search(options.only, sort)}
    for sort, found in sorted(wanted.items(), key=lambda item: -report.counts[item[0]])[: options.sorts]:
        if options.shrink:
            run.shrink(peers, found)
        show(found, report.counts[sort])
    for one in peers:
        one.close()
    for why, (times, (step, theirs, ours)) in sorted(deliberate.USED.items(), key=lambda item: -item[1][0]):
        print(f"{times} x seed {step.get('seed')}: {why}")
        if options.excused and re.search(options.excused, why):
            print(f"{show_step(step)}\n  Cassandra {theirs}\n  Helenus   {ours}")
    for (theirs, ours), times in compare.MISTAKES.most_common(options.sorts):
        print(f"{times} x another mistake: {theirs} || {ours}")
    if recorder:
        recorder.write(options.record)
    print(f"\n{done[0]} statements, {sum(report.counts.values())} differences of {len(report.first)} sorts, {time.time() - begun:.0f} s")
    raise SystemExit(1 if report.first else 0)


main()
