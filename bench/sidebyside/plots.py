"""A plot for each experiment: latencies of every case on every server, and the server's CPU time, against the bare cost where that was measured."""

import importlib.util
import os
import pathlib
import subprocess
import sys

from .results import QUANTILES

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLORS = {"cassandra-default": "#c44e52", "cassandra-best": "#dd8452", "helenus": "#4c72b0", "helenus-before": "#8c8c8c", "helenus-group": "#55a868"}
BARE_COLOR = "black"
INCHES_WIDE, INCHES_A_CASE = 13, 0.75
# of the height that a case has
LANE = 0.26


def with_matplotlib():
    """Goes on under a Python that has matplotlib: this one, or the one of .venv, into which it is installed."""
    if importlib.util.find_spec("matplotlib"):
        return
    venv = ROOT / ".venv"
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    if pathlib.Path(sys.prefix) == venv or subprocess.run([python, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", str(ROOT / "bench" / "requirements.txt")], check=True)
    os.execv(python, [str(python), *sys.argv])


def draw(out, results, experiments):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "helenus", "svg.fonttype": "none"})
    from matplotlib import pyplot

    for module in experiments:
        cases = results.cases(module.NAME)
        names = [name for name in results.servers(module.NAME) if name in COLORS]
        figure, (left, right) = pyplot.subplots(1, 2, sharey=True, figsize=(INCHES_WIDE, 1.6 + INCHES_A_CASE * len(cases)))
        for row, case in enumerate(cases):
            for lane, name in enumerate(names):
                pool = results.pool(module.NAME, case, name)
                if pool:
                    place = row + (lane - (len(names) - 1) / 2) * LANE
                    latencies(left, place, pool, COLORS[name])
                    server_cpu(right, place, pool, results.pool(module.NAME, case, "null"), COLORS[name])
        dress(figure, left, right, cases, names, module.TITLE)
        figure.savefig(out / f"{module.NAME}.svg", metadata={"Date": None})
        pyplot.close(figure)


def latencies(axes, place, pool, color):
    """Thin from the least to the most, thick from p50 to p95, a point at p50, bars at p80 and p99."""
    if not pool.seconds:
        return
    if not pool.histogram:
        axes.plot(pool.seconds * 1e6 / pool.requests, place, "o", color=color)
        return
    p50, p80, p95, p99 = (pool.quantile_us(quantile) for _, quantile in QUANTILES)
    axes.hlines(place, pool.min_ns / 1000, pool.max_ns / 1000, color=color, linewidth=1)
    axes.hlines(place, p50, p95, color=color, linewidth=5)
    axes.plot([p80, p99], [place, place], "|", color=color, markersize=9)
    axes.plot(p50, place, "o", color=color, markeredgecolor="white", markersize=7)


def server_cpu(axes, place, pool, bare, color):
    """A point, and a line to it from the bare cost of the same bytes."""
    cost = pool.cpu_us_per_request
    if bare and bare.cpu_us_per_request:
        axes.hlines(place, bare.cpu_us_per_request, cost, color=color, linewidth=2)
        axes.plot(bare.cpu_us_per_request, place, "|", color=BARE_COLOR, markersize=9)
    if cost:
        axes.plot(cost, place, "o", color=color, markeredgecolor="white", markersize=7)


def dress(figure, left, right, cases, names, title):
    from matplotlib.lines import Line2D

    left.set_yticks(range(len(cases)), cases)
    left.invert_yaxis()
    left.set_xlabel("latency, µs: min to max, p50 (point) to p95 (thick), p80, p99 (bars)", fontsize="small")
    right.set_xlabel("server CPU of a request, µs (black bar: bare cost of the same bytes)", fontsize="small")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.grid(axis="x", which="major", alpha=0.4)
    handles = [Line2D([], [], color=COLORS[name], linewidth=5, label=name) for name in names]
    figure.legend(handles=handles, loc="upper right", ncols=len(names), frameon=False)
    figure.suptitle(title, x=0.01, ha="left")
    figure.tight_layout(rect=(0, 0, 1, 0.97))
