"""Converts promptfoo's assertions to expectations of a case. An assertion without a counterpart becomes a note."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from workbench.authoring.from_calls import case_with_expected_call
from workbench.dataclasses import parsed_json
from workbench.exchange.importers.conversations import MappedPart, Note
from workbench.exchange.importers.source_files import Node, RefusedError
from workbench.numerals import number_text
from workbench.suite.expected_calls import ANY_TOOL
from workbench.suite.render import Table, holds_null
from workbench.trajectory.events import JsonValue

# The two JavaScript idioms in promptfoo's documentation of tool calls: they compare the name of the first call, or one
# of its arguments.
_NAME = r"output(?:\[0\])?(?:\.function)?\.name"
_ARGUMENT = r"JSON\.parse\(\s*output(?:\[0\])?(?:\.function)?\.arguments\s*\)\.([A-Za-z_]\w*)"
_NAME_IS = re.compile(rf"\s*{_NAME}\s*={{2,3}}\s*(.+?)\s*;?\s*", re.DOTALL)
_ARGUMENT_IS = re.compile(rf"\s*{_ARGUMENT}\s*={{2,3}}\s*(.+?)\s*;?\s*", re.DOTALL)
_OF_NAME = re.compile(rf"\s*{_NAME}\s*")
_OF_ARGUMENT = re.compile(rf"\s*{_ARGUMENT}\s*")
_VARIABLE = re.compile(r"(?:context\.)?vars\.(\w+)")
_KNOWN = {"type", "value", "threshold", "transform"}
_MEASURING = {"weight": 0, "metricOnly": True}
"""Keys and values of assertions that only measure: they never fail a test."""


class Expectations:
    """Collects the expectations of one case.

    `values` are the variables of the test. `tools` are the names of the tools that the case offers."""

    def __init__(self, values: Mapping[str, JsonValue], tools: list[str]) -> None:
        self.mapped: list[MappedPart] = []
        self.notes: list[Note] = []
        self._values = values
        self._tools = tools
        self._calls: list[Table] = []
        self._ordered: list[Table] = []
        self._disallowed: list[Table] = []
        # One assertion may give the name of the first call, and others its arguments. `keys` joins them.
        self._first: tuple[str | None, Table] = (None, {})
        self._contained: list[str] = []
        self._checks: list[object] = []
        self._at_most: Table = {}
        # The least and highest number of calls, by a tool's name or a pattern of names.
        self._used: dict[str, tuple[int, float]] = {}
        # Tools that may be called although all other calls are forbidden.
        self._repeatable: set[str] = set()
        self._no_others = False
        self._valid_calls = False

    def add(self, node: Node) -> None:
        """Add an assertion. If no expectation corresponds to a part of it, a note says so.

        Raises RefusedError for a node that is not an assertion."""
        kind = node.need("type").text()
        for key, value in _MEASURING.items():
            if node.table().get(key) == value:
                self.notes.append(Note(node.place, f"{kind}: not mapped: with its {key}, it never fails"))
                return
        try:
            done = self._add(kind, node)
        except RefusedError as error:
            self.notes.append(Note(error.place, f"{kind}: not mapped: {error.why}"))
            return
        if done is None:
            self.notes.append(Note(node.place, f"{kind}: not mapped: it has no counterpart"))
            return
        self.mapped.append(MappedPart(kind, done))
        if others := [key for key in node.table() if key not in _KNOWN]:
            self.notes.append(Note(node.place, f"{kind}: not mapped: its {', '.join(others)}"))

    def keys(self) -> Table:
        """Return the keys of the case that express the assertions."""
        tool, args = self._first
        if tool is None and args:
            tool = self._tools[0] if len(self._tools) == 1 else ANY_TOOL
        if tool is not None:
            self._expect_first(tool, args)
        for tool, (least, most) in self._used.items():
            self._expect_uses(tool, least, most)
        table: Table = {}
        if self._valid_calls:
            table["grading"] = {"invalid_arguments": "fail"}
            # promptfoo also refuses an answer without calls.
            if not self._ordered and not self._calls:
                self._calls.append({**self._any_call(), "times": [1, math.inf]})
            # With this key, calls of unknown tools fail. Calls of known tools are judged by the other assertions.
            if self._tools and not self._no_others:
                table["extra_calls"] = self._tools
        if self._ordered:
            table["ordered"] = self._ordered
        if self._calls:
            table["unordered"] = self._calls
        if self._disallowed:
            table["disallowed"] = self._disallowed
        if self._no_others:
            table["extra_calls"] = "forbid"
        if self._contained:
            table["response_contains"] = self._contained
        if self._checks:
            table["response"] = self._checks[0] if len(self._checks) == 1 else {"all_of": self._checks}
        if not table:
            table["expect_nothing_yet"] = True
            why = "no assertion could be mapped: the case expects nothing yet"
            self.notes.append(Note("", why, "expects nothing yet"))
        if self._at_most:
            table["at_most"] = self._at_most
        return table

    def _any_call(self) -> Table:
        if len(self._tools) > 1:
            return {"any_of": [{"tool": tool} for tool in self._tools]}
        return {"tool": self._tools[0] if self._tools else ANY_TOOL}

    def _expect_uses(self, tool: str, minimum: int, maximum: float) -> None:
        """Expect a number of calls of a tool, including calls that other assertions already expect."""
        known = sum(each.get("tool") == tool for each in self._calls)
        minimum = max(0, minimum - known)
        if maximum == 0:
            self._disallowed.append(self._call(tool))
        elif maximum <= known:
            self.notes.append(
                Note(
                    "", f"trajectory:tool-used: not mapped: at most {number_text(maximum)} calls of {tool} are allowed"
                )
            )
        elif (minimum, maximum) == (1, math.inf) and tool not in self._repeatable:
            self._calls.append(self._call(tool))
        elif minimum or maximum < math.inf or tool in self._repeatable:
            self._calls.append(self._call(tool) | {"times": [minimum, maximum - known]})

    def _call(self, name: str) -> Table:
        if not set("*?") & set(name):
            return {"tool": name}
        fitting: list[Table] = [{"tool": tool} for tool in self._tools if fnmatchcase(tool, name)]
        if len(fitting) == 1:
            return fitting[0]
        return {"any_of": fitting}

    def _expect_first(self, tool: str, args: Table) -> None:
        self._expect({"tool": tool, "args": args} if args else {"tool": tool}, "")

    def _expect(self, call: Table, place: str) -> None:
        """Expect a call: an expected call that earlier assertions are about, if it can meet them all, or another."""
        for other in self._calls:
            joined = _joined(other, call)
            if joined is None:
                continue
            if _arguments(joined).keys() not in (_arguments(other).keys(), _arguments(call).keys()):
                why = f"one call of {call['tool']} must meet this and another assertion; promptfoo also accepts two"
                self.notes.append(Note(place, why))
            other.update(joined)
            return
        self._calls.append(call)

    def _add(self, kind: str, node: Node) -> str | None:
        if kind in ("is-valid-openai-tools-call", "is-valid-openai-function-call"):
            self._valid_calls = True
            return "grading.invalid_arguments, and a call of any tool"
        if kind in _OF_CALLS:
            return _OF_CALLS[kind](self, node)
        if kind == "javascript":
            return self._javascript(node)
        if kind in _OF_TEXTS:
            check = _OF_TEXTS[kind](node, self._filled)
            transform = node.text_of("transform")
            if kind == "similar":
                self._weaker(node, "compares words here, not embeddings")
            if not transform:
                self._checks.append(check)
                return "response"
            return self._of_transform(node, transform, check)
        if kind in ("icontains", "icontains-all"):
            self._contained += [self._filled(each) for each in node.need("value").listed()]
            return "response_contains"
        if kind in ("llm-rubric", "trajectory:goal-success"):
            value = node.need("value")
            goal = value.first("goal", "rubric") or value
            self._checks.append({"judged": self._filled(goal)})
            return "response, judged: name a judge with --judge"
        if kind == "latency":
            self._at_most["latency_ms"] = self._number(node, "threshold")
            return "at_most.latency_ms"
        if kind == "cost":
            self._at_most["cost_usd"] = self._number(node, "threshold")
            return "at_most.cost_usd"
        if (positive := kind.removeprefix("not-")) != kind and positive in _OF_TEXTS and not node.has("transform"):
            self._checks.append({"none_of": [_OF_TEXTS[positive](node, self._filled)]})
            return "response"
        return None

    def _weaker(self, node: Node, reason: str) -> None:
        self.notes.append(Note(node.place, f"{node.text_of('type')}: {reason}"))

    def _filled(self, node: Node) -> str:
        # promptfoo uses templates of Nunjucks, of which only plain variables are supported here.
        text = str(node.value) if isinstance(node.value, int | float) else node.text()
        for name, value in self._values.items():
            if isinstance(value, str | int | float):
                text = str(value).join(re.split(rf"\{{\{{\s*{re.escape(name)}\s*\}}\}}", text))
        if "{{" in text or text.startswith("file://"):
            raise node.refused("it is a template or a file")
        return text

    @staticmethod
    def _number(node: Node, key: str) -> int | float:
        value = node.need(key).value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise node.refused(f"{key!r} must be a number")
        return value

    def _javascript(self, node: Node) -> str | None:
        code = node.need("value").text()
        if (match := _NAME_IS.fullmatch(code)) and isinstance(name := self._literal(match[1]), str):
            return self._first_tool(node, name)
        value = _NONE
        if match := _ARGUMENT_IS.fullmatch(code):
            value = self._literal(match[2])
        if match and value is not _NONE:
            return self._first_argument(match[1], {"equals": value, "cast": False})
        raise node.refused("only JavaScript that compares the name or one argument of the first call is supported")

    def _of_transform(self, node: Node, transform: str, check: Table) -> str:
        if _OF_NAME.fullmatch(transform) and isinstance(name := check.get("equals"), str):
            return self._first_tool(node, name)
        if match := _OF_ARGUMENT.fullmatch(transform):
            return self._first_argument(match[1], check)
        raise node.refused(f"its transform {transform!r} has no counterpart")

    def _first_tool(self, node: Node, name: str) -> str:
        if not name or self._first[0] not in (None, name):
            raise node.refused("another assertion already requires another tool in the first call")
        self._first = (name, self._first[1])
        return "tool of an expected call at any place"

    def _first_argument(self, name: str, check: Table) -> str:
        tool, args = self._first
        equal = check.get("equals")
        if check.keys() == {"equals", "cast"} and isinstance(equal, int | float):
            check = {"equals": equal}
        if (before := args.get(name)) is not None:
            check = {"all_of": [before, check]}
        self._first = (tool, {**args, name: check})
        return f"the argument {name} of an expected call"

    def _literal(self, code: str) -> JsonValue | object:
        """Return the value of a JavaScript literal or of a test variable; `_NONE` for any other code."""
        value: object
        if match := _VARIABLE.fullmatch(code):
            value = self._values.get(match[1], _NONE)
        elif len(code) > 1 and code[0] == code[-1] and code[0] in "'`" and not set("\\'`${") & set(code[1:-1]):
            value = code[1:-1]
        else:
            try:
                value = parsed_json(code)
            except ValueError:
                return _NONE
        if isinstance(value, str | int | float):
            return value
        return _NONE

    def _tool_call_f1(self, node: Node) -> str:
        value = node.need("value")
        given = value.value.split(",") if isinstance(value.value, str) else list(map(Node.text, value.items()))
        # promptfoo compares sets of names, so a repeated name counts once.
        names = list(dict.fromkeys(filter(None, map(str.strip, given))))
        threshold = self._number(node, "threshold") if node.has("threshold") else 1
        count = len(names)
        # With n expected names, one more name gives an F1 of 2n/(2n+1), and a missing name gives less. A threshold
        # above this value therefore requires equal sets.
        if not names or threshold <= 2 * count / (2 * count + 1):
            raise node.refused(f"a threshold of {threshold} allows missing or extra calls; see the accuracy grader")
        for name in names:
            self._used.setdefault(name, (1, math.inf))
            self._repeatable.add(name)
        self._no_others = True
        return "unordered, no other calls"

    def _tool_used(self, node: Node) -> str:
        for each in node.need("value").listed():
            name = self._named(each)
            least, most = self._used.get(name, (0, math.inf))
            fewest = self._number(each, "min") if each.has("min") else 1
            if each.has("max"):
                most = min(most, self._number(each, "max"))
                # If `max` is 0 and `min` is missing, the tool is forbidden.
                if not each.has("min"):
                    fewest = min(fewest, most)
            if not isinstance(fewest, int) or not 0 <= fewest <= most:
                raise each.refused("'min' must be a whole number from 0 up to 'max'")
            self._used[name] = max(least, fewest), most
        return "unordered"

    def _tool_not_used(self, node: Node) -> str:
        self._disallowed += self._calls_of(node.need("value").listed())
        return "disallowed"

    def _args_match(self, node: Node) -> str:
        value = node.need("value")
        given = (value.first("args", "arguments") or Node({})).table()
        left = {each.text() for each in value.listed_of("ignore")}
        kept = {}
        for name, inner in given.items():
            if name not in left:
                kept[name] = self._given(inner)
        exact = value.text_of("mode") == "exact"
        if not value.has("name"):
            raise value.refused("it names tools by a pattern")
        made = case_with_expected_call({}, self._named(value), kept)["ordered"]
        assert isinstance(made, list) and isinstance(made[0], dict)
        call: Table = made[0]
        args = call["args"]
        assert isinstance(args, dict)
        if exact:
            for name in sorted(left):
                args[name] = {"present": True, "optional": True}
            call["only_args"] = True
        else:
            for name, inner in kept.items():
                if isinstance(inner, dict) and not holds_null(inner):
                    args[name] = {"has_fields": _fields(inner)}
        if value.has("defaults"):
            self._weaker(node, "its defaults are not mapped")
        self._expect(call, node.place)
        return "args of an expected call"

    def _given(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str) and "{{" in value:
            return self._filled(Node(value))
        return value

    def _sequence(self, node: Node) -> str:
        value = node.need("value")
        steps = (value.get("steps") or value).items()
        self._ordered += self._calls_of(steps)
        # The default mode, `in_order`, allows other calls between the expected ones.
        if value.text_of("mode") == "exact":
            self._no_others = True
        return "ordered"

    def _step_count(self, node: Node) -> str | None:
        value = node.need("value")
        if value.text_of("type") not in ("tool", "tool_call") or value.has("min") or not value.has("max"):
            return None
        self._at_most["calls"] = self._number(value, "max")
        return "at_most.calls"

    def _calls_of(self, names: Iterable[Node]) -> list[Table]:
        return [self._call(self._named(each)) for each in names]

    def _named(self, node: Node) -> str:
        name = (node.first("name", "pattern") or node).text()
        if not name:
            raise node.refused("names no tool")
        if set("*?") & set(name) and not any(fnmatchcase(tool, name) for tool in self._tools):
            raise node.refused(f"no offered tool has a name that fits {name}")
        return name


# `None` is the value of JavaScript's null, so a separate marker is needed.
_NONE = object()

_OF_CALLS: dict[str, Callable[[Expectations, Node], str | None]] = {
    "tool-call-f1": Expectations._tool_call_f1,
    "trajectory:tool-used": Expectations._tool_used,
    "not-trajectory:tool-used": Expectations._tool_not_used,
    "trajectory:tool-args-match": Expectations._args_match,
    "trajectory:tool-sequence": Expectations._sequence,
    "trajectory:step-count": Expectations._step_count,
}

_Fill = Callable[[Node], str]


def _pattern(text: str, node: Node) -> Table:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise node.refused(f"not a regular expression of Python: {error}") from error
    return {"pattern": text}


def _joined(first: Table, second: Table) -> Table | None:
    """Return an expected call that meets both of two expected calls, or `None` if no call can."""
    if first.get("tool") != second["tool"]:
        return None
    wanted = [_arguments(call) for call in (first, second)]
    args = wanted[0] | wanted[1]
    for call, own in zip((first, second), wanted, strict=True):
        if any(_value(own.get(name, value)) != _value(value) for name, value in args.items()):
            return None
        if call.get("only_args") and own.keys() != args.keys():
            return None
    return {**first, **second, "args": args} if args else {**first, **second}


def _arguments(call: Table) -> Table:
    args = call.get("args", {})
    assert isinstance(args, dict)
    return args


def _value(check: object) -> object:
    if isinstance(check, dict) and check.keys() <= {"equals", "cast"}:
        return check.get("equals")
    return check


def _fields(given: Mapping[str, JsonValue]) -> Table:
    fields: Table = {}
    for name, value in given.items():
        fields[name] = {"has_fields": _fields(value)} if isinstance(value, dict) else value
    return fields


def _any(node: Node, make: Callable[[Node], Table], key: str) -> Table:
    return {key: [make(each) for each in node.need("value").items()]}


def _similar(node: Node, fill: _Fill) -> Table:
    check: Table = {"similar": fill(node.need("value"))}
    if node.has("threshold"):
        check["threshold"] = Expectations._number(node, "threshold")
    return check


def _equals(node: Node, fill: _Fill) -> Table:
    value = node.need("value")
    if isinstance(value.value, dict | list):
        return {"equals": json.dumps(value.value)}
    return {"equals": fill(value)}


_OF_TEXTS: dict[str, Callable[[Node, _Fill], Table]] = {
    "contains": lambda node, fill: {"contains": fill(node.need("value"))},
    "contains-all": lambda node, fill: _any(node, lambda each: {"contains": fill(each)}, "all_of"),
    "contains-any": lambda node, fill: _any(node, lambda each: {"contains": fill(each)}, "any_of"),
    "icontains-any": lambda node, fill: _any(
        node, lambda each: {"contains": fill(each), "ignore_case": True}, "any_of"
    ),
    "equals": _equals,
    "regex": lambda node, fill: _pattern(fill(node.need("value")), node),
    "starts-with": lambda node, fill: {"prefix": fill(node.need("value"))},
    "similar": _similar,
}
