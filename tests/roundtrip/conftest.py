"""What the tests share with those of the drivers."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "drivers" / "python")]

SEEDS = "1:3"


def pytest_addoption(parser):
    parser.addoption("--seeds", default=SEEDS, help="first:end of the seeds")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, end = map(int, metafunc.config.getoption("--seeds").split(":"))
        metafunc.parametrize("seed", range(first, end))
