"""How long grading takes: `python -m benchmarks.grading` prints microseconds per case, for each grader and for all.

The aim is a case of five calls under all five graders in 200 µs. A case of a hundred calls shows how it grows. What is
found out once for a case, such as its settings and its checks in words, is known when a case is graded again: the cold
figure is that of cases which are graded for the first time, as a batch with one run of each does it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial

from workbench.checks.evaluate import EMPTY_CONTEXT
from workbench.grading.graders import GRADERS
from workbench.grading.run import grade_run
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import RunFinished
from workbench.trajectory.messages import JsonValue, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

Arguments = Mapping[str, JsonValue]

EXPECTED: list[dict[str, object]] = [
    {"tool": "lock_door", "args": {"door": "front"}},
    {"tool": "set_lights", "args": {"room": "bedroom", "brightness": {"range": [5, 20]}}},
    {"tool": "set_lights", "args": {"room": "hall", "brightness": 0}},
    {"tool": "set_thermostat", "args": {"preset": "cool", "degrees": {"near": 19, "tolerance": 1}}},
    {"tool": "say", "args": {"text": {"similar": "Good night, everything is locked"}}},
]
RIGHT: list[tuple[str, Arguments]] = [
    ("lock_door", {"door": "front"}),
    ("set_lights", {"room": "bedroom", "brightness": 10}),
    ("set_lights", {"room": "hall", "brightness": 0}),
    ("set_thermostat", {"preset": "cool", "degrees": 19}),
    ("say", {"text": "Good night, everything is locked"}),
]
WRONG: list[tuple[str, Arguments]] = [
    ("set_lights", {"room": "hall", "brightness": 10}),
    ("set_lights", {"room": "bed", "brightness": 0}),
    ("say", {"text": "Sleep well, the door is locked"}),
    ("lock_door", {"door": "back"}),
    ("set_thermostat", {"preset": "warm", "degrees": 25}),
]


def main() -> None:
    suite = suite_of(EXPECTED)
    for name, calls in (("all right", RIGHT), ("shuffled and partly wrong", WRONG)):
        report_all(f"five calls, {name}", suite, trajectory_of(calls))
    many = suite_of(EXPECTED * 20)
    report_all("a hundred calls, all right", many, trajectory_of(RIGHT * 20), batches=3, repeats=2)
    report_all("a hundred calls, shuffled and partly wrong", many, trajectory_of(WRONG * 20), batches=3, repeats=2)


def suite_of(expected: list[dict[str, object]]) -> Suite:
    case = Case.model_validate({"name": "bedtime", "user": "Good night", "ordered": expected})
    return Suite.model_validate({"format": 1, "name": "home", "cases": [case]})


def report_all(name: str, suite: Suite, run: Trajectory, batches: int = 20, repeats: int = 100) -> None:
    (case,) = suite.cases
    settings = settings_of(suite, case)
    print(f"{name}:")
    for grader_name, grader in GRADERS.items():
        report(f"  {grader_name}", partial(grader.grade, case, settings, run, EMPTY_CONTEXT), batches, repeats)
    report("  grade_run, all of them", partial(grade_run, suite, case, run), batches, repeats)
    fresh = [deepcopy(case) for _ in range(batches * repeats)]
    report("  grade_run, all of them, cold", lambda: grade_run(suite, fresh.pop(), run), batches, repeats)


def trajectory_of(calls: list[tuple[str, Arguments]]) -> Trajectory:
    records = tuple(CallRecord(ToolCall(str(index), *call), 1) for index, call in enumerate(calls))
    return Trajectory("run", rounds=(Round(1, calls=records),), finish=RunFinished("answered"))


def report(name: str, work: Callable[[], object], batches: int, repeats: int) -> None:
    durations_us = []
    for _ in range(batches):
        began = time.perf_counter()
        for _ in range(repeats):
            work()
        durations_us.append((time.perf_counter() - began) / repeats * 1e6)
    print(f"{name}: median {statistics.median(durations_us):.0f} µs, best {min(durations_us):.0f} µs")


if __name__ == "__main__":
    main()
