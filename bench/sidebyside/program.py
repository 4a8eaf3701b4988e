"""A program of experiments: its flags, its servers, one module after the other, then table, plots and raw lines."""

import argparse
import dataclasses
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from . import plots, report, servers
from .bench import SCALES, Bench
from .results import Results

ROOT = pathlib.Path(__file__).resolve().parents[2]


def names(text):
    return text.split(",")


def arguments(description, kinds):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=names, help="experiments, with commas between")
    parser.add_argument("--servers", type=names, default=kinds, help="servers, with commas between")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--scale", choices=list(SCALES), default="full")
    parser.add_argument("--seconds-max", type=float, default=60, help="the longest that deletes are taken in, in one go")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="leave the cores to the kernel")
    parser.add_argument("--no-plots", dest="plots", action="store_false", help="for which matplotlib is not needed")
    parser.add_argument("--ip", default="127.0.0.70", help="address of the first Cassandra; the second has the next")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--profile", action="store_true", help="profiles.md: where Helenus' time goes in each case (needs perf)")
    parser.add_argument("--no-bare", dest="bare", action="store_false", help="leave the null server out")
    parser.add_argument("--keep", type=pathlib.Path, help="where the servers' data stay: what is loaded there is not loaded again")
    options = parser.parse_args()
    options.said = "".join(f" {argument}" for argument in sys.argv[1:])
    return options


@dataclasses.dataclass(frozen=True)
class Programs:
    """Paths of the client and of the null server; the server's own is HELENUS_BIN."""

    lean: str
    null: str


def build():
    programs = {"bench-lean": "BENCH_LEAN", "bench-null": "BENCH_NULL", "helenus": "HELENUS_BIN"}
    packages = [package for package, variable in programs.items() if not os.environ.get(variable)]
    if packages:
        subprocess.run(["cargo", "build", "-q", "--release", *(f"-p={package}" for package in packages)], cwd=ROOT, check=True)
    target = os.path.join(os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")), "release")
    path = lambda package: os.environ.get(programs[package]) or os.path.join(target, package)  # noqa: E731
    return Programs(path("bench-lean"), path("bench-null"))


def main(description, name, modules, kinds, create):
    """`name`: of the directory of the run; `create`: makes the tables, told a client."""
    # so that the servers are stopped then, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    options = arguments(description, kinds)
    if options.plots:
        plots.with_matplotlib()
    experiments = [module for module in modules if not options.only or module.NAME in options.only]
    programs = build()
    out = options.out or ROOT / "bench" / "runs" / f"{datetime.date.today()}-{os.cpu_count()}-core-vm-{name}"
    out.mkdir(parents=True, exist_ok=True)
    scratch = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="helenus-experiments-"))
    scratch.mkdir(parents=True, exist_ok=True)
    options.scratch = scratch
    prefix, _, last = options.ip.rpartition(".")
    made = servers.make(options.servers, scratch, f"{prefix}.", int(last))
    load = [os.getloadavg()[0]]
    try:
        with open(out / "raw.jsonl", "w") as raw:
            results = Results(raw)
            bench = Bench(made, programs, options, results)
            for server in made:
                bench.start(server)
                create(bench.client(server))
                bench.say(f"{server.name}: started")
            for module in experiments:
                for what in module.NEEDS:
                    bench.need(what)
                bench.pin_all()
                module.run(bench)
                bench.bare.measure(module.NAME)
            if options.profile:
                report.write_profiles(out, bench.recorded, experiments)
    finally:
        for server in made:
            server.stop()
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    load.append(os.getloadavg()[0])
    targets = report.write(out, name, results, experiments, bench.scale, options, load)
    if options.plots:
        plots.draw(out, results, experiments)
    for target in targets:
        print(f"{target.verdict:<12}  {target.what}: {report.number(target.value)}, {target.wanted}")
