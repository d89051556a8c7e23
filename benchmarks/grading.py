"""How long grading and reporting take: `python -m benchmarks.grading` prints microseconds of processor time a run.

Everything is measured in turn, round after round, so that a busy machine slows all of it alike; what is bare stands
beside it: comparing the arguments with `==`, and `json.dumps` of a report that is there as a whole. With the
`site-packages` of an environment that has Arcade's library (`--arcade FOLDER`), one evaluation of its critics is
measured too. What is found out once for a case, such as its checks in words, is known when a case is graded again: the
cold figure is that of cases which are graded for the first time, as a batch with one run of each does it. A run waits
for its deciding grader only.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from benchmarks.sizes import sized
from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.evaluation.plan import FinishedRun
from workbench.evaluation.report import Report
from workbench.grading.grade import RunResult
from workbench.grading.resolution import resolved_case
from workbench.grading.run import GRADERS_BY_NAME, grade_by_deciding_grader, grade_run
from workbench.suite.grading_model import GRADERS
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import JsonValue, RunFinished, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

Arguments = Mapping[str, JsonValue]
Measured = dict[str, Callable[[], object]]
"""The measured functions by name."""

ROUNDS = sized(12, 1)
TIMES = sized(60, 1)
"""The number of calls per round."""
REPORTED_RUNS = sized(200, 2)

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


RESOLVED: list[dict[str, object]] = [
    {"any_of": [EXPECTED[0], EXPECTED[4]], "times": [1, 3]},
    {**EXPECTED[1], "optional": True},
    {**EXPECTED[2], "times": [0, math.inf]},
    EXPECTED[3],
] * 10

PLAIN: list[dict[str, object]] = [{"tool": tool, "args": dict(arguments)} for tool, arguments in RIGHT]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arcade", type=Path, help="the site-packages of an environment with Arcade's library")
    arcade: Path | None = parser.parse_args().arcade
    for words, expected in (("plain values", PLAIN), ("checks", EXPECTED)):
        for size in (1, 5):
            for name, calls in (("right", RIGHT[:size]), ("wrong", WRONG[:size])):
                print(f"{size} {'call' if size == 1 else 'calls'}, {words}, {name}:")
                report(gradings(expected[:size], calls) | (arcade_of(arcade, expected[:size], calls) if arcade else {}))
    for name, calls in (("right", RIGHT), ("wrong", WRONG)):
        print(f"a hundred calls, checks, {name}:")
        report(gradings(EXPECTED * 20, calls * 20), rounds=sized(3, 1), times=sized(2, 1))
    for name, table in (
        ("ordered", RESOLVED),
        ("parallel groups", [{"any_order": RESOLVED[:20], "parallel": True}] * 2),
    ):
        print(f"40 expected calls with any_of, optional and times ({name}) resolved against a thousand calls:")
        report(resolutions(table, RIGHT * 200), rounds=sized(5, 1), times=1)
    for size in (1, 5):
        print(f"the JSON report, runs of {size} {'call' if size == 1 else 'calls'}, for each run:")
        report(reports(size), rounds=sized(5, 1), times=1, each=REPORTED_RUNS)


def gradings(expected: list[dict[str, object]], calls: list[tuple[str, Arguments]]) -> Measured:
    """Return the gradings of a run: by each grader, by all of them, and the bare comparison."""
    suite = suite_of(expected)
    (case,) = suite.cases
    run = trajectory_of(calls)
    settings = settings_of(suite, case)
    fresh, others = fresh_cases(suite, case), fresh_cases(suite, case)
    wanted = [record.arguments for record in trajectory_of(RIGHT * (len(calls) // 5 or 1)).calls[: len(calls)]]
    return {
        "arguments compared with ==": lambda: [
            record.arguments == arguments for record, arguments in zip(run.calls, wanted, strict=True)
        ],
        **{name: partial(each.grade, case, settings, run, EMPTY_CONTEXT) for name, each in GRADERS_BY_NAME.items()},
        "all of them": lambda: grade_run(suite, case, run),
        "all of them, cold": lambda: grade_run(suite, next(fresh), run),
        "what a run waits for": lambda: at_once(suite, case, run),
        "what a run waits for, cold": lambda: at_once(suite, next(others), run),
    }


def at_once(suite: Suite, case: Case, run: Trajectory) -> object:
    """Grade by the deciding grader, as the engine does. The others grade later, off the path of requests."""
    return grade_by_deciding_grader(suite, case, run, context=CheckContext(verdicts={}, search_time={}))


def resolutions(expected: list[dict[str, object]], calls: list[tuple[str, Arguments]]) -> Measured:
    """Return the resolution of expected calls against a run, by the equality of each grader."""
    suite = suite_of(expected)
    (case,) = suite.cases
    run, grading = trajectory_of(calls), settings_of(suite, case).grading
    return {
        name: partial(resolved_case, name, case, grading, run, GRADERS_BY_NAME[name].equal, EMPTY_CONTEXT)
        for name in GRADERS
    }


def fresh_cases(suite: Suite, case: Case) -> Iterator[Case]:
    """Yield copies of a case, made in advance, with computed settings, as at the beginning of a run."""
    copies = [deepcopy(case) for _ in range(ROUNDS * TIMES)]
    for each in copies:
        settings_of(suite, each)
    return iter(copies)


def arcade_of(site_packages: Path, expected: list[dict[str, object]], calls: list[tuple[str, Arguments]]) -> Measured:
    """Return one evaluation by Arcade's critics: a binary critic for each argument, or a similarity critic where the
    case has one."""
    if str(site_packages) not in sys.path:
        sys.path.append(str(site_packages))
    arcade, arcade_eval = import_module("arcade_evals"), import_module("arcade_evals.eval")
    logging.disable()
    names = dict.fromkeys(name for _, arguments in RIGHT[: len(calls)] for name in arguments)
    critics = [
        (arcade.SimilarityCritic if name == "text" and expected[-1] == EXPECTED[-1] else arcade.BinaryCritic)(
            name, 1 / len(names)
        )
        for name in names
    ]
    wanted = [arcade_eval.NamedExpectedToolCall(tool, dict(arguments)) for tool, arguments in RIGHT[: len(calls)]]
    case = arcade_eval.EvalCase("case", "", "", wanted, critics, rubric=arcade.EvalRubric())
    made = [(tool, dict(arguments)) for tool, arguments in calls]
    return {"Arcade's critics": lambda: case.evaluate(made)}


def reports(size: int) -> Measured:
    """Return the report of many runs, and the conversion of its values to text as a whole."""
    suite = suite_of(PLAIN[:size], REPORTED_RUNS)
    runs = tuple(FinishedRun(place, case, result_of(suite, case, place)) for place, case in enumerate(suite.cases))
    report = Report(runs=runs, suites={"suite.toml": suite}, started_at="2026-01-01T00:00:00+00:00")
    whole = json.loads(report.json())

    def written() -> None:
        for _ in replace(report).json_pieces():
            pass

    return {
        "json.dumps of what is in it": lambda: json.dumps(whole),
        "json.dumps of it, indented": lambda: json.dumps(whole, indent=2),
        "the report, run by run": written,
    }


def result_of(suite: Suite, case: Case, place: int) -> RunResult:
    run = trajectory_of(RIGHT[: len(case.ordered)])
    grades, status = grade_run(suite, case, run)
    return RunResult(f"run-{place}", "suite.toml", case.id, case.name, "model", 0, status, run, grades)


def suite_of(expected: list[dict[str, object]], cases: int = 1) -> Suite:
    table = [{"name": f"bedtime {number}", "user": "Good night", "ordered": expected} for number in range(cases)]
    return Suite.model_validate({"format": 1, "name": "home", "cases": table})


def trajectory_of(calls: list[tuple[str, Arguments]]) -> Trajectory:
    records = tuple(CallRecord(ToolCall(str(index), *call), 1) for index, call in enumerate(calls))
    return Trajectory("run", rounds=(Round(1, calls=records),), finish=RunFinished("answered"))


def report(measured: Measured, rounds: int = ROUNDS, times: int = TIMES, each: int = 1) -> None:
    """Print the time of each function. `each` is the number of runs that it processes."""
    durations_us: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(rounds):
        for name, work in measured.items():
            began = time.process_time()
            for _ in range(times):
                work()
            durations_us[name].append((time.process_time() - began) / times / each * 1e6)
    for name, found in durations_us.items():
        print(f"  {name:<30}best {min(found):7.1f}  median {statistics.median(found):7.1f} µs")


if __name__ == "__main__":
    main()
