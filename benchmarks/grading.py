"""How long grading takes: `python benchmarks/grading.py` prints microseconds per case.

The aim is a case of five calls in under 200 µs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

from workbench.grading.critics import grade_critics
from workbench.grading.run import grade_run
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading
from workbench.trajectory.events import RunFinished
from workbench.trajectory.messages import JsonValue, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

Arguments = Mapping[str, JsonValue]

EXPECTED = [
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
    case = Case.model_validate({"name": "bedtime", "user": "Good night", "ordered": EXPECTED})
    suite = Suite.model_validate({"format": 1, "name": "home", "cases": [case]})
    for name, calls in (("all right", RIGHT), ("shuffled and partly wrong", WRONG)):
        run = trajectory_of(calls)
        report(f"critics, five calls, {name}", partial(grade_critics, case, Grading(), run))
        report(f"grade_run, five calls, {name}", partial(grade_run, suite, case, run))


def trajectory_of(calls: list[tuple[str, Arguments]]) -> Trajectory:
    records = tuple(CallRecord(ToolCall(str(index), *call), 1) for index, call in enumerate(calls))
    return Trajectory("run", rounds=(Round(1, calls=records),), finish=RunFinished("answered"))


def report(name: str, work: Callable[[], object], batches: int = 20, repeats: int = 100) -> None:
    durations_us = []
    for _ in range(batches):
        began = time.perf_counter()
        for _ in range(repeats):
            work()
        durations_us.append((time.perf_counter() - began) / repeats * 1e6)
    print(f"{name}: median {statistics.median(durations_us):.0f} µs, best {min(durations_us):.0f} µs")


if __name__ == "__main__":
    main()
