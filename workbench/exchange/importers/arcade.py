"""Imports suites of Arcade evals.

These are Python code, which is executed (`workbench.exchange.importers.arcade_runner`) by the interpreter for which it
is written, and only with the user's consent.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from workbench.authoring.form.typed import holds_null
from workbench.exchange.importers.conversations import (
    Format,
    Imported,
    ImportedCase,
    Mapped,
    Note,
    case_of,
    first_refusal,
    gathered,
    graded_as,
    last_request,
    not_imported,
    notes_without,
    tool_of,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, Source, bare_values, source_of
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

    The code sees only the environment variables that any program needs. Raises RefusedError if it fails or takes too
    long."""
    kept = {}
    for name in _PASSED_ON:
        if name in environment:
            kept[name] = environment[name]
    # A relative path starts at the user's folder, but the code runs in the folder of the file.
    if os.sep in python:
        python = str(Path(python).absolute())
    try:
        process = subprocess.Popen(
            [python, str(_RUNNER), file.name],
            cwd=file.absolute().parent,
            env=kept | {"PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a process group of its own, which `_stop` ends with all that the code started
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
        lines = errors.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        why = lines[-1]
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
    notes = []
    for each in source.root.items_of("problems"):
        notes.append(not_imported(each.text_of("name"), each.text_of("error")))
    makers: list[Callable[[], ImportedCase]] = []
    every = []
    for suite in suites:
        every.extend(suite.need("cases").items())
    # The first case's rubric becomes the suite's. Only cases with another rubric write their own.
    usual = _rubric(every[0]) if every else _USUAL
    top: Table = {"limits": {"max_rounds": 1}, "grading": _grading(usual, _USUAL, {"arcade_compatible": True})}
    systems = {case.text_of("system") for case in every}
    system = systems.pop() if len(systems) == 1 else ""
    if system:
        top["system"] = system
    for suite in suites:
        name = suite.need("name").text()
        tools = list(map(tool_of, suite.need("tools").items()))
        comparative = suite.value_of("comparative")
        if isinstance(comparative, int) and comparative:
            left = counted(comparative, "comparative case")
            notes.append(not_imported(name, f"{left}, whose tracks have no counterpart"))
        of_case: Table = {}
        if len(suites) == 1:
            top["name"] = name
        else:
            of_case["tags"] = [name]
        for each in suite.need("cases").items():
            makers.append(partial(_case, each, tools, usual, of_case, "" if system else each.text_of("system")))
    cases_made, others = gathered(makers)
    if not cases_made:
        raise first_refusal([*notes, *others], "holds no suite with cases")
    if len(suites) > 1:
        notes.append(Note("", f"{len(suites)} suites are one here: the cases of each have its name as a tag"))
    return Imported(cases_made, top, (*notes, *others))


def _rubric(case: Node) -> dict[str, JsonValue]:
    rubric = case.at("rubric")
    found = dict(_USUAL)
    for key in _USUAL:
        value = rubric.get(key)
        if value is None:
            continue
        if not isinstance(value.value, int | float):
            raise value.refused("must be a number, or true or false")
        found[key] = value.value
    return found


def _grading(rubric: dict[str, JsonValue], usual: dict[str, JsonValue], critics: Table) -> Table:
    """Return the keys of a rubric that differ from the usual one, as a suite's `grading`."""
    grading: Table = {}
    critics = dict(critics)
    for key, value in rubric.items():
        if value != usual[key]:
            keys = grading if key.endswith("_threshold") else critics
            keys[key] = value
    if critics:
        grading["critics"] = critics
    return grading


def _case(case: Node, tools: list[Table], usual: dict[str, JsonValue], of_case: Table, system: str) -> ImportedCase:
    name = case.need("name").text()
    said = bare_values(case.items_of("messages"))
    said.append({"role": "user", "content": case.need("user").text()})
    document: dict[str, JsonValue] = {"system": system, "name": name}
    conversation = conversation_of(Node({**document, "messages": said}, case.place))
    asked = case_of(conversation, last_request(conversation.messages))
    table = asked.table_without("expect_nothing_yet")
    table["tools"] = [dict(tool) for tool in tools]
    table |= of_case
    if own := _grading(_rubric(case), usual, {}):
        table["grading"] = own
    notes = notes_without(asked.notes, "no tools", "expects nothing yet")
    calls = case.need("calls").items()
    critics = {}
    for critic in case.need("critics").items():
        critics[critic.need("field").text()] = critic
    # The names of expected calls may have `_` for the dots of a tool's name.
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
    named: set[str] = set()
    for call in calls:
        named.update(call.need("args").table())
    if expected:
        of_call = expected[0]["args"]
        assert isinstance(of_call, dict)
        for field, critic in critics.items():
            if field in named:
                continue
            # Arcade's critic of an argument that no call names compares it with null.
            check = _check(field, critic, Node(None, critic.place), notes)
            if check is not None:
                of_call[field] = check
        table["unordered"] = expected
        mapped = [Mapped("expected calls", "unordered")]
    else:
        table["expect_no_calls"] = True
        mapped = [Mapped("no expected call", "expect_no_calls")]
    graded = sum(critic.text_of("critic") != "NoneCritic" for critic in critics.values())
    if graded:
        mapped.append(Mapped(counted(graded, "critic"), "checks with their weights"))
    return ImportedCase(case.place, table, (*asked.mapped, *mapped), tuple(notes))


def _check(name: str, critic: Node | None, value: Node, notes: list[Note]) -> Table | None:
    """Return the check that corresponds to a critic of an argument, `None` if there is none."""
    kind = "NoneCritic"
    weight: object = 0
    if critic is not None:
        kind = critic.text_of("critic")
        # A weight is a number or one of Arcade's names, which a suite has too.
        weight = critic.need("weight").value

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
        if value.value is None:
            return {"equals_null": True, "weight": weight}
        if holds_null(value.value):
            return refused("null inside a value")
        return {"equals": value.value, "weight": weight}
    if value.value is None:
        return refused("it has no expected value to compare with")
    if kind == "NumericCritic":
        near = _finite(value.value)
        if near is None:
            return refused("its expected value is not a number")
        exact = value.value if isinstance(value.value, int) and not isinstance(value.value, bool) else near
        bounds = bare_values(critic.need("value_range").items())
        return {"near": exact, "value_range": bounds, **_option(critic, "match_threshold"), "weight": weight}
    if kind == "SimilarityCritic":
        # Arcade compares the text of the Python value: True, not true.
        text = str(value.value)
        if isinstance(value.value, list):
            text = " ".join(map(str, value.value))
        return {"similar": text, **_option(critic, "similarity_threshold", "threshold"), "weight": weight}
    if kind == "DatetimeCritic":
        times: Table = {}
        for key in ("tolerance", "max_difference"):
            if (each := critic.get(key)) is not None:
                times[key] = f"{setting_text(_seconds(each))}s"
        return {"datetime": value.text(), **times, "weight": weight}
    return refused("no such critic is known")


def _finite(value: JsonValue) -> float | None:
    if not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _seconds(node: Node) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise node.refused("must be a number of seconds")
    return node.value


def _option(critic: Node, key: str, name: str = "") -> Table:
    if not critic.has(key):
        return {}
    return {name or key: critic.value_of(key)}


ARCADE = Format(_recognizes, _read, graded_as("last"))
