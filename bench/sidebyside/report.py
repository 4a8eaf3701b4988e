"""table.md: targets beside what was measured, then every case on every server."""

import datetime
import os

from . import profiles
from .results import QUANTILES


def processor():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown processor")
    memory = int(open("/proc/meminfo").readline().split()[1]) // 1024 // 1024
    return f"{os.cpu_count()} cores ({model}), {memory} GiB of memory, virtual machine"


def number(value):
    if value is None:
        return ""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def target_lines(targets):
    yield "| target | wanted | measured | |"
    yield "|---|---:|---:|---|"
    for target in targets:
        yield f"| {target.what} | {target.wanted} | {number(target.value)} | {target.verdict} |"


def case_lines(results, experiment):
    names = [name for name, _ in QUANTILES]
    yield f"| case | server | times | min µs | {' | '.join(f'{name} µs' for name in names)} | max µs | requests/s | server CPU µs/request | above bare | rows/CPU s |"
    yield "|---|---|---:|---:|" + "---:|" * (len(names) + 5)
    for case in results.cases(experiment):
        for server in results.servers(experiment):
            pool = results.pool(experiment, case, server)
            if pool:
                yield f"| {case} | {server} | {pool.repetitions} | {pool_cells(results, experiment, case, pool)} |"
                if written := sum(outcome.get("bytes", 0) for outcome in pool.outcomes):
                    yield f"| {case} | {server} | | {number(written / pool.requests)} bytes |"
            for failure in results.failures.get((experiment, case, server), []):
                yield f"| {case} | {server} | failed | {failure} |"


def pool_cells(results, experiment, case, pool):
    bare = results.pool(experiment, case, "null")
    cells = [pool.min_ns and pool.min_ns / 1000, *(pool.quantile_us(quantile) for _, quantile in QUANTILES), pool.max_ns / 1000 or None]
    cells += [pool.per_second, pool.cpu_us_per_request, bare and bare is not pool and pool.cpu_us_per_request - bare.cpu_us_per_request or None]
    cells += [pool.rows_per_cpu_second if pool.rows > pool.requests or not pool.histogram else None]
    return " | ".join(number(cell) for cell in cells)


def head(name, options, load):
    return (
        f"# Experiments: Cassandra 5.0.8 and Helenus, {datetime.date.today()}\n\n{processor()}; load average {load[0]:.1f} at the start, {load[1]:.1f} at the end.\n"
        f"`bench/{name}{options.said}`: every case on every server in turn, {options.repetitions} times; latencies of all repetitions together.\n"
        + ("Each server has core 0 alone, the client core 1.\n" if options.pin else "Servers and client share the cores.\n")
    )


def write(out, name, results, experiments, scale, options, load):
    lines = [head(name, options, load), "## Targets\n"]
    judged = {module.NAME: list(module.targets(results, scale)) for module in experiments}
    every = [target for targets in judged.values() for target in targets]
    for verdict in ("reached", "not reached", "not measured"):
        lines.append(f"{sum(target.verdict == verdict for target in every)} {verdict}" + ("." if verdict == "not measured" else ","))
    for module in experiments:
        lines += [f"\n## {module.TITLE}\n", *target_lines(judged[module.NAME]), "", *case_lines(results, module.NAME)]
        lines.append(f"\n![{module.TITLE}]({module.NAME}.svg)")
    (out / "table.md").write_text("\n".join(lines) + "\n")
    return every


def write_profiles(out, recorded, experiments):
    lines = [f"# Where the time goes in Helenus, {datetime.date.today()}\n\n{processor()}; samples of perf, user and kernel, while a case is answered."]
    for module in experiments:
        lines += profiles.lines(module.TITLE, recorded.get(module.NAME, []))
    (out / "profiles.md").write_text("\n".join(lines) + "\n")
