"""Suites of Arcade evals.

They are Python, so they are run, by the Python that they are written for
(`workbench.exchange.importers.arcade_runner`): only if the user has said so."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from workbench.exchange.importers.conversations import (
    Format,
    Imported,
    ImportedCase,
    Mapped,
    Note,
    case_of,
    gathered,
    graded_as,
    last_request,
    not_imported,
    tool_of,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, Source, source_of
from workbench.limits import MAX_FILE_BYTES
from workbench.numerals import counted, seconds_text, setting_text
from workbench.suite.render import Table
from workbench.trajectory.events import JsonValue

TIME_LIMIT_S = 120.0
_RUNNER = Path(__file__).with_name("arcade_runner.py")
_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TEMP", "SYSTEMROOT", "VIRTUAL_ENV", "PYTHONPATH")
_USUAL: dict[str, JsonValue] = {
    "fail_threshold": 0.8,
    "warn_threshold": 0.9,
    "fail_on_tool_selection": True,
    "fail_on_tool_call_quantity": True,
    "tool_selection_weight": 1.0,
}
"""The rubric of Arcade, which is also that of `critics`."""


def executed(
    file: Path, code: bytes, python: str, environment: Mapping[str, str], time_limit_s: float = TIME_LIMIT_S
) -> Source:
    """Run the code of a file in its folder, and return the suites in it.

    It sees no variables but those that programs need. Raises RefusedError where it fails or takes too long."""
    kept = {name: environment[name] for name in _PASSED_ON if name in environment}
    try:
        process = subprocess.Popen(
            [str(Path(python).absolute()) if os.sep in python else python, str(_RUNNER), file.name],
            cwd=file.absolute().parent,
            env=kept | {"PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise RefusedError(f"{python} cannot be started: {getattr(error, 'strerror', None) or error}") from error
    try:
        output, errors = process.communicate(code, time_limit_s)
    except subprocess.TimeoutExpired as error:
        raise RefusedError(f"{file} was stopped: it ran for more than {seconds_text(time_limit_s)}") from error
    finally:
        _stop(process)
    if process.returncode != 0:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"exit code {process.returncode}"
        more = "; name the Python that has Arcade evals with --python" if "ModuleNotFoundError" in why else ""
        raise RefusedError(f"{file} cannot be run by {python}: {why}{more}")
    if len(output) > MAX_FILE_BYTES:
        raise RefusedError(f"prints suites, and its output {MAX_FILE_BYTES.reached()}", file=file)
    return source_of(file.with_suffix(".json"), output)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _recognizes(source: Source) -> bool:
    return source.root.has("arcade_suites")


def _read(source: Source) -> Imported:
    suites = source.root.need("arcade_suites").items()
    problems = source.root.get("problems")
    notes = [
        not_imported(each.text_of("name"), each.text_of("error"))
        for each in (problems.items() if problems is not None else [])
    ]
    makers: list[Callable[[], ImportedCase]] = []
    every = [case for suite in suites for case in suite.need("cases").items()]
    usual = _rubric(every[0]) if every else _USUAL
    systems = {case.text_of("system") for case in every}
    system = systems.pop() if len(systems) == 1 else ""
    top: Table = {"system": system} if system else {}
    top |= {"limits": {"max_rounds": 1}, "grading": _grading(usual, _USUAL, {"arcade_compatible": True})}
    for suite in suites:
        name = suite.need("name").text()
        tools = [tool_of(each) for each in suite.need("tools").items()]
        comparative = suite.get("comparative")
        if comparative is not None and isinstance(comparative.value, int) and comparative.value:
            left = counted(comparative.value, "comparative case")
            notes.append(not_imported(name, f"{left}, whose tracks have no counterpart"))
        of_case: Table = {"tags": [name]} if len(suites) > 1 else {}
        top |= {"name": name} if len(suites) == 1 else {}
        for each in suite.need("cases").items():
            makers.append(partial(_case, each, tools, usual, of_case, "" if system else each.text_of("system")))
    cases_made, others = gathered(makers)
    if not cases_made:
        why = [*notes, *others]
        raise RefusedError(why[0].why if why else "holds no suite with cases", why[0].place if why else "")
    if len(suites) > 1:
        notes.append(Note("", f"{len(suites)} suites are one here: the cases of each have its name as a tag"))
    return Imported(cases_made, top, (*notes, *others))


def _rubric(case: Node) -> dict[str, JsonValue]:
    rubric = case.get("rubric")
    found = dict(_USUAL)
    for key in _USUAL:
        value = rubric.get(key) if rubric is not None else None
        if value is not None and not isinstance(value.value, int | float):
            raise value.refused("must be a number, or true or false")
        found |= {key: value.value} if value is not None else {}
    return found


def _grading(rubric: dict[str, JsonValue], usual: dict[str, JsonValue], critics: Table) -> Table:
    """Return what a rubric has in another way than usual."""
    other = {key: value for key, value in rubric.items() if value != usual[key]}
    critics = critics | {key: value for key, value in other.items() if not key.endswith("_threshold")}
    thresholds: Table = {key: value for key, value in other.items() if key.endswith("_threshold")}
    return thresholds | ({"critics": critics} if critics else {})


def _case(case: Node, tools: list[Table], usual: dict[str, JsonValue], of_case: Table, system: str) -> ImportedCase:
    name = case.need("name").text()
    before = case.get("messages")
    said: list[JsonValue] = [*(each.value for each in (before.items() if before is not None else []))]
    said.append({"role": "user", "content": case.need("user").text()})
    document: dict[str, JsonValue] = {"system": system, "name": name}
    conversation = conversation_of(Node({**document, "messages": said}, case.place))
    asked = case_of(conversation, last_request(conversation.messages))
    table = {key: value for key, value in asked.table.items() if key != "expect_nothing_yet"}
    table["tools"] = [dict(tool) for tool in tools]
    table |= of_case
    if own := _grading(_rubric(case), usual, {}):
        table["grading"] = own
    notes = [note for note in asked.notes if note.kind not in ("no tools", "expects nothing yet")]
    calls = case.need("calls").items()
    critics = {critic.need("field").text(): critic for critic in case.need("critics").items()}
    names = {str(tool["name"]).replace(".", "_"): str(tool["name"]) for tool in tools}
    expected: list[Table] = []
    for call in calls:
        tool, given = call.need("tool").text(), call.need("args")
        args: Table = {}
        for field in given.table():
            value = Node(given.table()[field], f"{given.place}.{field}")
            check = _check(field, critics.get(field), value, notes)
            if check is not None:
                args[field] = check
        expected.append({"tool": names.get(tool.replace(".", "_"), tool), "args": args})
    nowhere = [field for field in critics if not any(field in call.need("args").table() for call in calls)]
    for field in nowhere if expected else []:
        check = _check(field, critics[field], Node(None, critics[field].place), notes)
        of_call = expected[0]["args"]
        assert isinstance(of_call, dict)
        if check is not None:
            of_call[field] = check
    table |= {"unordered": expected} if expected else {"expect_no_calls": True}
    graded = sum(critic.text_of("critic") != "NoneCritic" for critic in critics.values())
    mapped = [Mapped("expected calls", "unordered") if expected else Mapped("no expected call", "expect_no_calls")]
    if graded:
        mapped.append(Mapped(counted(graded, "critic"), "checks with their weights"))
    return ImportedCase(case.place, table, (*asked.mapped, *mapped), tuple(notes))


def _check(name: str, critic: Node | None, value: Node, notes: list[Note]) -> Table | None:
    """Return what a critic asks of an argument, `None` where no check can say it."""
    kind = critic.text_of("critic") if critic is not None else "NoneCritic"
    weight = _number(critic, "weight") if critic is not None else 0

    def refused(why: str) -> Table | None:
        notes.append(Note(value.place, f"the {kind} of {name} is not mapped: {why}"))
        return None

    if critic is None or kind in ("NoneCritic", "BinaryCritic", "custom"):
        if kind == "custom" and critic is not None:
            kind = critic.text_of("class")
            refused("it is a class of its own; write a check with python. Until then the argument has no weight")
            weight = 0
        if kind == "NoneCritic":
            weight = 0
        if _has_null(value.value) and value.value is not None:
            return refused("null inside a value")
        return {"equals_null": True, "weight": weight} if value.value is None else _equals(value.value, weight)
    if value.value is None:
        return refused("nothing is expected, which it cannot compare")
    if kind == "NumericCritic":
        try:
            near = float(value.value) if isinstance(value.value, str | int | float) else None
        except (ValueError, OverflowError):
            near = None
        if near is None or not abs(near) < float("inf"):
            return refused("its expected value is no number")
        exact = value.value if isinstance(value.value, int) and not isinstance(value.value, bool) else near
        bounds = [each.value for each in critic.need("value_range").items()]
        return {"near": exact, "value_range": bounds, **_option(critic, "match_threshold"), "weight": weight}
    if kind == "SimilarityCritic":
        shown = value.value
        text = " ".join(map(str, shown)) if isinstance(shown, list) else shown if isinstance(shown, str) else str(shown)
        return {"similar": text, **_option(critic, "similarity_threshold", "threshold"), "weight": weight}
    if kind == "DatetimeCritic":
        times = {
            key: f"{setting_text(_seconds(each))}s"
            for key in ("tolerance", "max_difference")
            if (each := critic.get(key))
        }
        return {"datetime": value.text(), **times, "weight": weight}
    return refused("no such critic is known")


def _seconds(node: Node) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise node.refused("must be a number of seconds")
    return node.value


def _equals(value: JsonValue, weight: object) -> Table:
    return {"equals": value, "weight": weight}


def _number(node: Node, key: str) -> object:
    """Return a weight: a number, or one of Arcade's names, which are the same here."""
    return node.need(key).value


def _option(critic: Node, key: str, name: str = "") -> Table:
    found = critic.get(key)
    return {name or key: found.value} if found is not None else {}


def _has_null(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


ARCADE = Format(_recognizes, _read, graded_as("last"))
