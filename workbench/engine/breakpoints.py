"""Breakpoints: their notation, and the evaluation of their conditions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from workbench.checks.check import CHECK_CLASSES, Checks
from workbench.checks.values import describe_value
from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.suite.model import Mock
from workbench.suite.problems import did_you_mean, quoted
from workbench.suite.render import one_line, to_toml_data
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import type_names

if TYPE_CHECKING:
    from workbench.engine.checkpoint import HoldPlace, HoldPoint

BreakOn = Literal["tool", "error", "failed-check", "round", "not-read-only"]
"""The kinds of breakpoints, in their notation."""


@dataclass(frozen=True)
class Breakpoint:
    """A condition under which a run is held (paused).

    `tool` limits the kinds `tool`, `error` and `failed-check` to calls of one tool. `when` has the checks that a call's
    arguments must meet. `round` is the number of the round before which a breakpoint of the kind `round` holds the run.
    Only an `enabled` breakpoint holds a run."""

    on: BreakOn
    tool: str | None = None
    when: Checks | None = None
    round: int | None = None
    enabled: bool = True

    def holds_same_places(self, other: Breakpoint) -> bool:
        """Return whether two breakpoints are equal, except for `enabled`."""
        return (self.on, self.tool, self.when or None, self.round) == (
            other.on,
            other.tool,
            other.when or None,
            other.round,
        )


# A breakpoint is one line of text. The command line, the app and project files share the notation.
KINDS: Mapping[BreakOn, str] = {
    "tool": "before calls of a tool: tool NAME, or tool NAME when { argument = check }",
    "error": "after a result that is an error: error, or error NAME for one tool",
    "failed-check": "before a call that fails a check of its case: failed-check, or failed-check NAME for one tool",
    "round": "before the request of a round: round N, counted from 1",
    "not-read-only": "before calls of tools that are not marked read-only: not-read-only",
}
"""The description of each kind of breakpoint: when it holds a run, and how it is written."""

_NAME = late_pattern(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\S+")
_WHEN = late_pattern(r"when(?=[\s{]|$)")
_COLUMN = late_pattern(r" \(column (\d+)\)$")
_WHEN_KEY = "when = "
_MAX_DIGITS = 9

_AS_MOCK = """format = 1
name = "a breakpoint"
cases = [{{ name = "none", user = "none" }}]
[[mocks]]
tool = "none"
result = ""
{when}"""
"""A suite with one mock that has the condition. Parsing it gives breakpoints the same checks and errors as mocks."""


class BreakpointError(Exception):
    """A line is not a breakpoint.

    The message names the column, the mistake and the correction."""


def breakpoint_of(line: str) -> Breakpoint:
    """Parse a breakpoint, such as `tool book when { city = "Oslo" }`.

    Raises BreakpointError."""
    if len(line.splitlines()) > 1:
        raise BreakpointError("a breakpoint is one line, so give each breakpoint separately")
    kind, start, rest = _word(line, 0)
    if kind not in KINDS:
        if not kind:
            raise _error(1, "there is no breakpoint here", f"write one of {', '.join(KINDS)}")
        way_out = did_you_mean(kind.lower(), KINDS) or f"there are {', '.join(KINDS)}"
        raise _error(start, f"{quoted(kind)} is not a kind of breakpoint", way_out)
    on = next(each for each in get_args(BreakOn) if each == kind)
    if on == "round":
        return Breakpoint(on, round=_round(line, rest))
    if on == "not-read-only":
        _end(line, rest, "not-read-only takes no name: tool NAME holds runs at one tool")
        return Breakpoint(on)
    tool, rest = _tool(line, rest)
    if on == "tool":
        if tool is None:
            raise _error(_word(line, rest)[1], "the name of the tool is missing", "write tool NAME")
        return Breakpoint(on, tool, _condition(line, rest))
    _end(line, rest, f"nothing may follow the name in {on} NAME: put names with spaces in quotes")
    return Breakpoint(on, tool)


def breakpoint_line(point: Breakpoint) -> str:
    """Return a breakpoint as a line in its notation. `enabled` is ignored.

    Raises ValueError for a value that TOML cannot express."""
    if point.round is not None:
        return f"{point.on} {point.round}"
    if point.tool is None:
        return point.on
    named = f"{point.on} {_written(point.tool)}"
    if not point.when:
        return named
    when = to_toml_data(Mock(tool="none", when=point.when, result=""))["when"]
    return f"{named} when {one_line(when)}"


def _written(name: str) -> str:
    is_bare = name.isprintable() and _NAME.fullmatch(name) is not None and name[0] not in "\"'"
    if is_bare:
        return name
    return one_line(name)


def _word(line: str, position: int) -> tuple[str, int, int]:
    found = re.compile(r"\S+").search(line, position)
    if found:
        return (found[0], found.start() + 1, found.end())
    return ("", len(line.rstrip()) + 1, len(line))


def _tool(line: str, position: int) -> tuple[str | None, int]:
    _, start, end = _word(line, position)
    found = _NAME.match(line, start - 1)
    if found is None:
        return None, end
    if found[0][0] not in "\"'":
        return found[0], found.end()
    if found[0][-1] != found[0][0] or len(found[0]) == 1:
        raise _error(start, "the name of the tool has no end", f"close it with {found[0][0]}")
    try:
        name = str(tomllib.loads(f"name = {found[0]}")["name"])
    except ValueError:
        raise _error(start, "the name of the tool is not a TOML string", "write \\\\ for a backslash") from None
    if not name:
        raise _error(start, "the name of the tool is empty", "write tool NAME")
    return name, found.end()


def _round(line: str, position: int) -> int:
    word, start, end = _word(line, position)
    # Python refuses to read numbers of more than 4300 digits, so the text is cut.
    if not (word.isascii() and word.isdecimal() and int(word[:_MAX_DIGITS]) > 0 and len(word) <= _MAX_DIGITS):
        message = "the number of the round is missing"
        if word:
            message = f"{quoted(word)} is not a round"
        raise _error(start, message, f"write round N, from 1 to {'9' * _MAX_DIGITS}")
    _end(line, end, "nothing may follow the number of the round")
    return int(word)


def _end(line: str, position: int, advice: str) -> None:
    word, start, _ = _word(line, position)
    if word:
        raise _error(start, f"{quoted(word)} is not expected here", advice)


def _condition(line: str, position: int) -> Checks | None:
    word, start, _ = _word(line, position)
    if not word:
        return None
    found = _WHEN.match(line, start - 1)
    if found is None:
        way_out = did_you_mean(word, ["when"]) or "put names with spaces in quotes"
        if word.startswith("{"):
            way_out = "the name of the tool is missing"
        raise _error(start, f"{quoted(word)} is not expected here: when {{ … }} may follow the name", way_out)
    text, begins, _ = _word(line, found.end())
    if not text.startswith("{"):
        raise _error(begins, "the condition is missing", "write when { argument = check }, as in a mock")
    return _checks(line[begins - 1 :], begins)


def _checks(text: str, begins: int) -> Checks | None:
    file = parse_suite(_AS_MOCK.format(when=_WHEN_KEY + text), Path())
    for problem in file.errors:
        column, message = begins, problem.message
        # The message has a column of the suite text above. Convert it to the column of the breakpoint's line.
        found = _COLUMN.search(message)
        if found:
            column = int(found[1]) - len(_WHEN_KEY) + begins - 1
            message = message[: found.start()]
        where = problem.where.removeprefix("mocks[0].")
        subject = f"{where}: " if where else "the condition "
        raise _error(column, f"{subject}{message.replace('of the file', 'of the line')}", problem.hint)
    assert file.suite is not None
    return file.suite.mocks[0].when or None


def _error(column: int, message: str, advice: str) -> BreakpointError:
    return BreakpointError(_with_hint(f"column {column}: {message}", advice))


def _with_hint(message: str, hint: str) -> str:
    return f"{message} ({hint})" if hint else message


_AT: Mapping[str, HoldPlace] = {"error": "result", "round": "request"}
"""The point at which each kind of breakpoint holds a run; kinds without an entry hold it before a call."""

EvaluateCondition = Callable[[Checks, Mapping[str, JsonValue]], Awaitable[bool]]
"""Returns whether a call's arguments meet the checks of a condition. Raises ConditionError."""

FindFailedCheck: TypeAlias = "Callable[[HoldPoint], Awaitable[str | None]]"
"""Returns a short description of the check that the next call fails; `None` if the call fails no check.
Raises ConditionError."""


class ConditionError(Exception):
    """The condition of a breakpoint cannot be evaluated.

    The message is the reason."""


async def break_reason(
    breakpoints: Iterable[Breakpoint], point: HoldPoint, holds: EvaluateCondition, failing: FindFailedCheck
) -> str | None:
    """Return why a run is held at a point; `None` if no breakpoint matches.

    `holds` evaluates the condition of a breakpoint, and `failing` finds the check that a call fails. A condition that
    cannot be evaluated also holds the run, with the error as the reason."""
    possible = [each for each in breakpoints if _may_match(each, point)]
    # A condition may ask a judge, so breakpoints without a condition are tried first.
    for each in sorted(possible, key=_cost):
        try:
            why = await _why(each, point, holds, failing)
        except ConditionError as error:
            return f"breakpoint {breakpoint_line(each)} cannot be evaluated: {error}"
        if why is not None:
            return f"breakpoint: {why}"
    return None


def _may_match(each: Breakpoint, point: HoldPoint) -> bool:
    """Return whether an enabled breakpoint can match a point, without evaluating its condition."""
    if not each.enabled or point.at != _AT.get(each.on, "call"):
        return False
    if each.on == "round":
        return each.round == point.round
    call = point.call
    if call is None or each.tool not in (None, call.tool):
        return False
    if each.on == "error":
        result = call.result
        # An answer by the person who steps through the run is not an error of the tool.
        return result is not None and result.is_error and result.source not in ("edited", "skipped")
    return each.on != "not-read-only" or point.tool is None or point.tool.annotations.get("readOnlyHint") is not True


def _cost(each: Breakpoint) -> int:
    return 2 if each.on == "failed-check" else int(each.when is not None)


async def _why(each: Breakpoint, point: HoldPoint, holds: EvaluateCondition, failing: FindFailedCheck) -> str | None:
    if each.on == "round":
        return f"round {point.round}"
    assert point.call is not None
    tool, arguments = point.call.tool, point.call.sent.arguments
    match each.on:
        case "error":
            return f"error of {tool}"
        case "not-read-only":
            return f"{tool} is not marked read-only"
        case "failed-check":
            return await failing(point)
        case _:
            when = each.when or {}
            if when and not await holds(when, arguments):
                return None
            values = (f"{name} {describe_value(arguments[name])}" for name in when if name in arguments)
            return ", ".join((f"tool {tool}", *values))


def breakpoint_warning(point: Breakpoint, tools: Iterable[ToolDefinition]) -> str | None:
    """Return why a breakpoint will probably never hold a run; `None` if there is no such reason.

    Reasons are an unknown tool, an unknown argument or a misspelt check. `tools` are the tools of the open suites. If
    there are none, every name is accepted."""
    if point.tool is None:
        return None
    known = tuple(tools)
    mine = [tool for tool in known if tool.name == point.tool]
    if known and not mine:
        doubt = f"no open suite has a known tool {quoted(point.tool)}"
        return _with_hint(doubt, did_you_mean(point.tool, [tool.name for tool in known]))
    arguments = [_arguments(tool) for tool in mine]
    for name, check in (point.when or {}).items():
        if arguments and all(given is not None and name not in given for given in arguments):
            return _with_hint(f"{quoted(point.tool)} has no argument {quoted(name)}", _other_names(name, arguments))
        if not any(_is_object((given or {}).get(name)) for given in arguments):
            # A misspelt check raises no error, because it is read as a table with which the argument is compared.
            misspelt = _misspelt(check.bare_value)
            if misspelt is not None:
                return misspelt
    return None


def _other_names(name: str, arguments: Iterable[Mapping[str, JsonValue] | None]) -> str:
    names: set[str] = set()
    for given in arguments:
        names.update(given or ())
    if not names:
        return "it takes none"
    return did_you_mean(name, sorted(names)) or f"it has {', '.join(sorted(names))}"


def _arguments(tool: ToolDefinition) -> Mapping[str, JsonValue] | None:
    """Return the schemas of a tool's arguments by name.

    Returns `None` if the tool also accepts arguments that its definition does not name."""
    schema = tool.parameters
    properties = schema.get("properties")
    open_to_others = schema.get("additionalProperties") not in (None, False)
    elsewhere = {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"} & schema.keys()
    if isinstance(properties, Mapping) and not open_to_others and not elsewhere:
        return properties
    return None


def _is_object(schema: JsonValue) -> bool:
    """Return whether the schema of an argument allows an object.

    If it does, a table in a breakpoint's condition is a value to compare, not a misspelt check."""
    return isinstance(schema, Mapping) and "object" in (type_names(schema) or ())


def _misspelt(value: JsonValue) -> str | None:
    if not isinstance(value, Mapping):
        return None
    for key in value:
        hint = did_you_mean(key, CHECK_CLASSES)
        if hint:
            return f"{quoted(key)} is not a check, so the table is compared as a value ({hint})"
    return None
