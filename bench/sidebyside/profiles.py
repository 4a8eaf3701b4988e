"""Where Helenus' time goes in each case: samples of perf while it answers, the functions that had most of them."""

import re
import signal
import subprocess
import time

HERTZ = 999
SECONDS = 1.0
# perf needs so long until it counts
ATTACH_SECONDS = 0.3
FUNCTIONS = 15
LINE = re.compile(r"^\s*(\d+\.\d+)%\s+(\S+)\s+\[[.k]\]\s+(.*)$")


def record(file, pid, work):
    """`work` is called while the process is looked at."""
    command = ["perf", "record", "-q", "-F", str(HERTZ), "-p", str(pid), "-o", str(file)]
    perf = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        time.sleep(ATTACH_SECONDS)
        work()
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait()


def functions(file):
    """Share in percent, program or library, function; and what the kernel had in all."""
    command = ["perf", "report", "-i", str(file), "--stdio", "-q", "--sort", "dso,symbol"]
    text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = [(float(match[1]), match[2], match[3].strip()) for match in map(LINE.match, text.splitlines()) if match]
    kernel = sum(share for share, place, _ in found if place.startswith("[kernel"))
    return kernel, [line for line in found if not line[1].startswith("[kernel")][:FUNCTIONS]


def shorten(symbol):
    """Without perf's columns behind it and the hash that the compiler adds."""
    return re.sub(r"::h[0-9a-f]{16}$", "", re.split(r"\s{2,}", symbol)[0])


def lines(title, recorded):
    """A section of profiles.md: a table for each case."""
    yield f"\n## {title}"
    for case, file in recorded:
        kernel, found = functions(file)
        yield f"\n### {case}\n\n| % | function |\n|---:|---|\n| {kernel:.1f} | the kernel, all of it |"
        yield from (f"| {share:.1f} | `{shorten(symbol)}` |" for share, _, symbol in found)
        file.unlink()
