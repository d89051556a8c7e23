"""Suites that are built case by case in Python. They are validated like suite files, and can be saved as such."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from workbench.api.function_tools import tool_of_function
from workbench.api.servers import ServerLike, server_table
from workbench.api.suites import LoadedSuite, SuiteError, SuitePath, UsageError, load
from workbench.checks.functions import as_written
from workbench.config.folders import user_folders
from workbench.config.program import create_program
from workbench.encoding import toml_of
from workbench.exchange.importers.conversations import tool_of, tool_table
from workbench.exchange.importers.source_files import Node, RefusedError
from workbench.numerals import counted
from workbench.suite.files import SavingError, absolute, save, state_of
from workbench.suite.model import derived_id
from workbench.suite.problems import Place, Problem
from workbench.suite.problems import place_text as place_text
from workbench.suite.render import one_line, suite_text
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite, with_images
from workbench.trajectory.events import ToolDefinition

Table = dict[str, Any]

ToolLike = Callable[..., object] | ToolDefinition | Mapping[str, Any]
"""A tool: a function with type hints, a tool from `workbench.list_tools`, or a table as in `[[tools]]`.

A table may also be a definition in the form of OpenAI, Anthropic or MCP."""

CallLike = str | Callable[..., Any] | Mapping[str, Any]
"""A call: the name or the function of its tool, or a table."""

Mocks = Mapping[str, object] | Iterable[Mapping[str, Any]]
"""Answers to calls: a mapping of tool names to results, or tables as in `[[mocks]]`."""


class Suite:
    """A suite that is built in Python.

    `tools` are functions with type hints, definitions, or tools from `workbench.list_tools`. Functions are not called.
    `servers` are commands, addresses or tables, in a list or by name. `mocks` are results by tool name, or tables.
    Other keywords are keys of a suite file: `models`, `grading`, `gate`, `tags`, …

    The suite is validated when it is evaluated, loaded or saved. SuiteError then has all problems, with the names of
    cases in place of lines. Servers and code that your program adds to a suite need no approval, because your program
    could start them itself. Those that `from_toml` and `from_dict` read need approval.

    >>> import workbench
    >>> from workbench.checks import contains
    >>> def search_docs(query: str, limit: int = 10) -> list[str]:
    ...     "Search the documents of the company."
    >>> suite = workbench.Suite("Docs", tools=[search_docs])
    >>> _ = suite.case("Vacation", "Find our vacation policy").expects("search_docs", query=contains("vacation"))
    >>> _ = suite.case("Small talk", "How are you?").expects_nothing()
    >>> report = workbench.evaluate(suite, model="offline")
    >>> [case.status for case in report.cases]
    ['passed', 'passed']"""

    def __init__(
        self,
        name: str,
        *,
        tools: Iterable[ToolLike] = (),
        servers: Iterable[ServerLike] | Mapping[str, ServerLike] = (),
        mocks: Mocks = (),
        system: str | None = None,
        **keys: Any,
    ) -> None:
        self._document: Table = {"format": 1, "name": name}
        self._cases: list[Case] = []
        self._is_own = True
        self._path = absolute(Path(f"{derived_id(str(name))}.toml"))
        if system is not None:
            self._document["system"] = system
        self._copy_keys(keys)
        given: Any
        for key, given in (("tools", tools), ("servers", servers), ("mocks", mocks)):
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise UsageError(f"{key} must be a list, not {type(given).__name__}: write {key}=[…]")
            if written := _CONVERTED[key](given):
                self._document[key] = written

    def _copy_keys(self, document: Mapping[str, Any]) -> None:
        """Copy the keys of a document into the suite. A list of case tables becomes `Case` objects."""
        table = _plain(document)
        if isinstance(variants := document.get("variants"), list | tuple):
            table["variants"] = [variant_table(each) if isinstance(each, Mapping) else each for each in variants]
        cases = table.get("cases")
        if isinstance(cases, list) and all(isinstance(case, dict) for case in cases):
            self._cases += [Case(self, case) for case in table.pop("cases")]
        self._document |= table

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return a suite from a mapping with the keys of a suite file.

        Its needs must be approved, because the mapping may come from anywhere.

        >>> import workbench
        >>> case = {"name": "Hi", "user": "How are you?", "expect_no_calls": True}
        >>> workbench.Suite.from_dict({"name": "Talk", "cases": [case]})
        Suite('Talk', 1 case)"""
        suite = cls(document.get("name", ""))
        suite._is_own = False
        if "name" not in document:
            del suite._document["name"]
        suite._copy_keys(document)
        return suite

    @classmethod
    def from_toml(cls, path: SuitePath) -> Self:
        """Return the suite of a file, to add cases to it. Its needs must be approved. Raises SuiteError.

        If the suite is saved, comments of the file are lost."""
        file = load_suite(Path(path))
        if file.suite is None:
            raise SuiteError(file.problems)
        suite = cls.from_dict(toml_of(file.text))
        suite._path = absolute(file.path)
        return suite

    def case(self, name: str, user: str | None = None, *, mocks: Mocks = (), **keys: Any) -> Case:
        """Add a case: its name, the user's request, and any keys of a case in a suite file (`tags`, `steps`, …)."""
        table: Table = {"name": name}
        if user is not None:
            table["user"] = user
        for key, value in keys.items():
            table[key] = _plain(value)
        if mocks := _mocks(mocks):
            table["mocks"] = mocks
        case = Case(self, table)
        self._cases.append(case)
        return case

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases in their order."""
        return tuple(self._cases)

    def to_dict(self) -> Table:
        """Return a copy of the suite as a document with the keys of a suite file."""
        document = copy.deepcopy(self._document)
        if self._cases:
            document["cases"] = [copy.deepcopy(case._table) for case in self._cases]
        return document

    def to_toml(self) -> str:
        """Return the text of the suite, as `save` writes it. Raises SuiteError for a value that TOML lacks."""
        document = self.to_dict()
        if unwritable := [*_unwritable(document)]:
            problems = []
            for place, message in unwritable:
                case = _case_at(document, place)
                problems.append(Problem(self._shown_as, None, place_text(place), message, _WRITABLE, case=case))
            raise SuiteError(problems)
        return suite_text(document)

    def load(self) -> LoadedSuite:
        """Validate the suite, and return it like `workbench.load`. Raises SuiteError with all problems."""
        file = with_images(parse_suite(self.to_toml(), self._path))
        file = self._with_names(file)
        if file.suite is None:
            raise SuiteError(file.problems)
        return LoadedSuite(file.suite.name, file.path, file, self._is_own)

    def save(self, path: SuitePath, *, force: bool = False) -> LoadedSuite:
        """Write the suite to a file, and return it as `workbench.load` reads it.

        The loaded suite equals this suite. Paths in the file are relative to its folder. Raises SuiteError for a suite
        with errors. Raises UsageError if the file exists (unless `force` replaces it), would hold a secret of the
        environment, or cannot be written."""
        file, text = absolute(Path(path)), self.load().file.text
        shown = create_program(user_folders(), os.environ).secrets.redact(text)
        for line, redacted in zip(text.splitlines(), shown.splitlines(), strict=False):
            if line != redacted:
                raise UsageError(f"{path} was not written, since it would hold a secret of the environment: {redacted}")
        if not force and file.exists():
            raise UsageError(f"{path} exists: name another file, or replace it with force=True")
        try:
            save(file, text, state_of(file))
        except (SavingError, OSError) as error:
            raise UsageError(str(error)) from None
        self._path = file
        return load(path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Suite) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        return f"Suite({self._document.get('name')!r}, {counted(len(self._cases), 'case')})"

    @property
    def _shown_as(self) -> Path:
        return Path(str(self._document.get("name") or "suite"))

    def _with_names(self, file: SuiteFile) -> SuiteFile:
        """Replace the file and line of the suite's problems by the suite's name, because there is no file."""
        problems = tuple(replace(problem, file=self._shown_as, line=None) for problem in file.problems)
        return replace(file, problems=problems)


class Case:
    """A case of a suite built in Python. Its methods return the case, so that they can be chained."""

    def __init__(self, suite: Suite, table: Table) -> None:
        self.suite = suite
        self._table = table

    def expects(self, tool: CallLike, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> Self:
        """Expect a call of a tool after all calls expected so far. Each argument is a value or a check.

        Without arguments, any arguments are accepted. `tool` may also be a table with the keys of `[[cases.ordered]]`,
        such as `{"tool": "search_docs", "args": {"query": "vacation"}, "times": 2}`."""
        self._added("ordered", _call(tool, arguments, named))
        return self

    def forbids(self, tool: CallLike, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> Self:
        """Forbid all calls of a tool, or only calls with matching arguments."""
        self._added("disallowed", _call(tool, arguments, named))
        return self

    def expects_nothing(self) -> Self:
        """Expect that no tool is called."""
        self._table["expect_no_calls"] = True
        return self

    def answers(self, check: object) -> Self:
        """Expect a final answer that meets a check, such as `contains("30 days")`. A text must equal the whole answer.

        If this is called again, the answer must meet all checks."""
        wanted = as_written(_plain(check))
        if "response" in self._table:
            wanted = {"all_of": [self._table["response"], wanted]}
        self._table["response"] = wanted
        return self

    def case(self, name: str, user: str | None = None, *, mocks: Mocks = (), **keys: Any) -> Case:
        """Add the next case to the suite, as `Suite.case` does."""
        return self.suite.case(name, user, mocks=mocks, **keys)

    def __repr__(self) -> str:
        return f"Case({self._table.get('name')!r} of {self.suite!r})"

    def _added(self, key: str, call: Table) -> None:
        self._table.setdefault(key, []).append(call)


def _call(tool: CallLike, arguments: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Table:
    if not isinstance(arguments, Mapping | None):
        raise UsageError(f"the arguments of {tool!r} must be keywords or a dict, not {arguments!r}")
    args: Table = {**(arguments or {}), **named}
    if isinstance(tool, Mapping):
        if args:
            raise UsageError(f"a call given as a table takes no arguments beside it: write args = {args!r} into it")
        call: Table = _plain(tool)
        if isinstance(call.get("args"), dict):
            call["args"] = _args(call["args"])
        return call
    call = {"tool": getattr(tool, "__name__", tool)}
    if args or arguments is not None:
        call["args"] = _args(args)
    return call


def _args(args: Mapping[str, Any]) -> Table:
    return {name: as_written(_plain(value)) for name, value in args.items()}


def _tool(tool: ToolLike) -> Any:
    match tool:
        case ToolDefinition():
            table = tool_table(tool.name, tool.description, tool.parameters)
            if tool.annotations:
                table["annotations"] = _plain(tool.annotations)
            return table
        case Mapping():
            if not {"function", "inputSchema", "input_schema"} & tool.keys():
                return _plain(tool)
            try:
                return tool_of(Node(_plain(tool), "the tool"))
            except RefusedError as error:
                raise UsageError(str(error)) from None
        case _ if callable(tool):
            return tool_of_function(tool)
        case _:
            raise UsageError(f"a tool must be a function, a table, or a tool from workbench.list_tools, not {tool!r}")


def _servers(servers: Iterable[ServerLike] | Mapping[str, ServerLike]) -> list[Table]:
    if isinstance(servers, Mapping):
        return [server_table(server, name) for name, server in servers.items()]
    return [server_table(server) for server in servers]


def _mocks(mocks: Mocks) -> list[Any]:
    if isinstance(mocks, Mapping):
        return [{"tool": tool, "result": _plain(result)} for tool, result in mocks.items()]
    return [*map(_plain, mocks)]


def variant_table(variant: Mapping[str, Any]) -> Table:
    """Return a variant as the table of a suite file.

    Tools, servers and mocks may have the forms that `Suite` accepts."""
    table: Table = _plain({key: value for key, value in variant.items() if key not in _CONVERTED})
    for key, converted in _CONVERTED.items():
        if key in variant:
            table[key] = converted(variant[key])
    return table


_CONVERTED: Mapping[str, Callable[[Any], list[Any]]] = {
    "tools": lambda tools: [*map(_tool, tools)],
    "servers": _servers,
    "mocks": _mocks,
}


def _plain(value: Any) -> Any:
    """Return a copy of a value in which dicts and lists replace other mappings and sequences."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    return value


_WRITABLE = "give a text, a number, True or False, a date, a list or a dict"


def _unwritable(value: object, place: Place = ()) -> Iterator[tuple[Place, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _unwritable(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unwritable(inner, (*place, index))
    else:
        try:
            one_line(value)
        except ValueError as error:
            yield place, str(error)


def _case_at(document: Table, place: Sequence[str | int]) -> str:
    if len(place) > 1 and place[0] == "cases" and isinstance(place[1], int):
        return str(document["cases"][place[1]].get("name", ""))
    return ""
