"""How long a big suite takes to load: 2,000 cases, about 1.1 MB, without and with one problem in it.

Run with `python -m benchmarks.suite_loading [CASES]`. The goal is half a second on a machine with two cores.
"""

from __future__ import annotations

import statistics
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from benchmarks.sizes import sized
from workbench.suite.positions import scan
from workbench.suite.suite_file import SuiteFile, parse_suite

ROUNDS = sized(7, 1)

HEADER = """\
format = 1
name = "A big suite"
system = "You are a home assistant."

[limits]
max_rounds = 6

"""

TOOL = """\
[[tools]]
name = "tool_{n}"
description = "Sets device {n} of the house."
[tools.parameters]
type = "object"
required = ["room", "level"]
[tools.parameters.properties.room]
type = "string"
[tools.parameters.properties.level]
type = "integer"
minimum = 0

"""

CASE = """\
# Case {n}: two calls, one of them with checks.
[[cases]]
id = "case-{n}"
name = "Case number {n}"
tags = ["generated", "group-{group}"]
user = "Set the lights of room {n} to a cosy level and lock the front door, please."
response_contains = ["room {n}", "locked"]

[[cases.ordered]]
tool = "tool_{tool}"
[cases.ordered.args]
room = "room {n}"
level = {{ range = [{group}, 40] }}
colour = {{ one_of = ["warm white", "amber"] }}

[[cases.ordered]]
tool = "tool_{other}"
args = {{ room = "hall", level = {{ near = 20, tolerance = 5 }}, note = "front door, case {n}" }}

"""


def big_suite(cases: int) -> str:
    """Return a suite with many cases, written as a user would."""
    tools = "".join(TOOL.format(n=number) for number in range(20))
    bodies = (CASE.format(n=n, group=n % 20, tool=n % 20, other=(n + 7) % 20) for n in range(cases))
    return HEADER + tools + "".join(bodies)


def median_ms(work: Callable[[], object]) -> float:
    """Return the median of several rounds in milliseconds."""
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken)


def main() -> None:
    """Print the figures."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else sized(2000, 20)
    text = big_suite(cases)
    faulty = text.replace("near = 20", 'near = "x"', 1)
    path = Path("big.toml")

    def loaded(content: str, errors: int) -> SuiteFile:
        file = parse_suite(content, path)
        if len(file.errors) != errors:
            raise SystemExit(f"expected {errors} errors, found {file.errors}")
        return file

    start = time.perf_counter()
    loaded(text, 0)
    first = (time.perf_counter() - start) * 1000
    print(f"{cases} cases, {len(text) / 1e6:.2f} MB, {text.count(chr(10))} lines; median of {ROUNDS} rounds")
    print(f"tomllib alone       {median_ms(lambda: tomllib.loads(text)):7.1f} ms")
    print(f"load, first time    {first:7.1f} ms")
    print(f"load                {median_ms(lambda: loaded(text, 0)):7.1f} ms")
    print(f"load with a problem {median_ms(lambda: loaded(faulty, 1)):7.1f} ms")
    print(f"positions alone     {median_ms(lambda: scan(text)):7.1f} ms")
    print(f"lines of last case  {median_ms(lambda: loaded(text, 0).case_lines(cases - 1)):7.1f} ms, loading included")


if __name__ == "__main__":
    main()
