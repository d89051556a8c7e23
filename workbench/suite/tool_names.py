"""Finds names in a suite that belong to no existing tool. No model could call such a tool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches

from workbench.dataclasses import cached_by_identity, dataclass
from workbench.suite.expected_calls import ANY_TOOL, comparable_name
from workbench.suite.grading_model import ExtraCalls
from workbench.suite.model import Case, Mock, Suite, written_tools
from workbench.suite.problems import Finding, Place, warning
from workbench.suite.server_model import Answer
from workbench.suite.user_model import UserTable

_MAX_LISTED = 8
_ON_PURPOSE = "write unlisted = true if this is intended"


def _unknown(place: Place, message: str, hint: str) -> Finding:
    return warning(place, message, hint, "unknown tool")


@dataclass(frozen=True)
class KnownNames:
    """The names of the existing tools.

    `prefixes` are the prefixes of servers whose tools are unknown. Any name with such a prefix may exist."""

    names: Collection[str]
    prefixes: tuple[str, ...] = ()

    def has(self, name: str, *, loosely: bool = False) -> bool:
        """Return whether a tool of this name exists or may exist.

        If `loosely`, letter case is ignored, and `-`, `_` and `.` are alike."""
        if name in self.names or any(name.startswith(prefix) for prefix in self.prefixes):
            return True
        return loosely and comparable_name(name) in map(comparable_name, self.names)

    def hint(self, name: str) -> str:
        """Return a hint for an unknown name: the most similar name, or else all existing names."""
        nearest = get_close_matches(name, self.names, n=1, cutoff=0.6)
        if nearest:
            return f"did you mean {nearest[0]!r}?"
        if not self.names:
            return "no tools are defined: write them as [[tools]], or name a server"
        available = f"available: {', '.join([*self.names][:_MAX_LISTED])}"
        if len(self.names) > _MAX_LISTED:
            return f"{available} and {len(self.names) - _MAX_LISTED} more"
        return available


def unknown_names(suite: Suite, case: Case, known: KnownNames) -> Iterator[Finding]:
    """Find names of tools in a case that do not exist. Places are relative to the case."""
    for index, name in enumerate(case.offer or ()):
        if not known.has(name):
            yield _unknown(("offer", index), f"offers {name!r}, but there is no such tool", known.hint(name))
    for rule_place, rule in (
        (("extra_calls",), case.extra_calls),
        (("grading", "extra_calls"), case.grading.extra_calls),
    ):
        if rule is not None:
            yield from _unknown_free(rule, rule_place, known)
    offered = known
    if case.offer is not None:
        offered = KnownNames(case.offer)
    # `critics` and disallowed calls compare names loosely. The other graders compare them exactly.
    by = case.grading.by or suite.grading.by or "critics"
    for at, call in case.written_calls():
        if not call.tool or call.unlisted:
            continue
        place: Place = (*at, "tool")
        if call.tool == ANY_TOOL:
            if at[0] != "disallowed" and not offered.names and not offered.prefixes:
                yield warning(place, "expects a call, but no tool is offered", "offer one, or expect no call")
            continue
        if at[0] == "disallowed":
            if "before" in at or "after" in at:
                if not known.has(call.tool, loosely=True):
                    message = f"asks for calls of {call.tool!r}, but there is no such tool"
                    yield _unknown(place, message, f"{known.hint(call.tool)}; {_ON_PURPOSE}")
            elif not known.has(call.tool, loosely=True):
                hint = f"{known.hint(call.tool)}; {_ON_PURPOSE}"
                yield _unknown(place, f"forbids {call.tool!r}, but there is no such tool", hint)
        elif not offered.has(call.tool, loosely=by == "critics"):
            message = f"expects {call.tool!r}, but no such tool is offered"
            if known.has(call.tool):
                yield _unknown(place, message, "add it to `offer`, or the model never sees it")
            else:
                yield _unknown(place, message, offered.hint(call.tool))
    for own_place, own in case.own_calls():
        if not known.has(own.tool):
            message = f"calls {own.tool!r}, but there is no such tool"
            yield _unknown((*own_place, "tool"), message, known.hint(own.tool))
    if case.conversation is not None:
        yield from _unknown_awaited(case, case.conversation, known)
    if case.mocks or case.answers:
        yield from unknown_mocks(case.mocks, known)
        yield from unknown_answers(case.answers, known)


def _unknown_awaited(case: Case, user: UserTable, known: KnownNames) -> Iterator[Finding]:
    on_purpose = {call.tool for _, call in case.written_calls() if call.unlisted}
    for place, condition in user.conditions():
        for index, name in enumerate(condition.called):
            if name not in on_purpose and not known.has(name, loosely=True):
                message = f"waits for a call of {name!r}, but there is no such tool"
                yield _unknown(("user", *place, "called", index), message, known.hint(name))


def _unknown_free(rule: ExtraCalls | None, place: Place, known: KnownNames) -> Iterator[Finding]:
    if not isinstance(rule, tuple):
        return
    for index, name in enumerate(rule):
        if name != ANY_TOOL and not known.has(name, loosely=True):
            yield _unknown((*place, index), f"frees calls of {name!r}, but there is no such tool", known.hint(name))


def unknown_mocks(mocks: Iterable[Mock], known: KnownNames) -> Iterator[Finding]:
    for index, mock in enumerate(mocks):
        if not mock.unlisted and not known.has(mock.tool):
            hint = known.hint(mock.tool)
            yield _unknown(("mocks", index, "tool"), f"mocks {mock.tool!r}, but there is no such tool", hint)


def unknown_answers(answers: Iterable[Answer], known: KnownNames) -> Iterator[Finding]:
    """Find answers to server requests that are limited to calls of a tool that does not exist.

    Places begin with `answers`."""
    for index, answer in enumerate(answers):
        if answer.tool is not None and not known.has(answer.tool):
            message = f"answers in calls of {answer.tool!r}, but there is no such tool"
            yield _unknown(("answers", index, "tool"), message, known.hint(answer.tool))


def names_for_all(suite: Suite, server_tools: Iterable[str], prefixes: Iterable[str] = ()) -> KnownNames:
    """Return the names of the suite's tools, of the tools of all its cases, and of `server_tools`."""
    written, prefixes = _written_names(suite), tuple(prefixes)
    more = [name for name in server_tools if name not in written.names]
    if not more and not prefixes:
        return written
    return KnownNames(dict.fromkeys((*written.names, *more)), prefixes)


def _all_written_names(suite: Suite) -> KnownNames:
    names = dict.fromkeys(tool.name for tool in suite.tools)
    names |= dict.fromkeys(tool.name for tool in suite.provider_tools)
    for case in suite.cases:
        names |= dict.fromkeys(tool.name for tool in case.tools)
    return KnownNames(names)


_written_names: Callable[[Suite], KnownNames] = cached_by_identity(_all_written_names)


def unknown_in_suite(
    suite: Suite, case_indices: Iterable[int], known_names: Collection[str], prefixes: Collection[str]
) -> Iterator[Finding]:
    """Find all names in a suite that belong to no tool.

    `case_indices` are the indices of the suite's cases in the file. `known_names` has the names of servers' tools.
    `prefixes` are the prefixes of servers whose tools are unknown."""
    known = names_for_all(suite, known_names, prefixes)
    if suite.subject is not None and suite.subject.has_own_tools:
        yield from _new_names(suite, case_indices, known)
        return
    yield from unknown_mocks(suite.mocks, known)
    yield from unknown_answers(suite.answers, known)
    yield from _unknown_free(suite.grading.extra_calls, ("grading", "extra_calls"), known)

    def names_for(case: Case) -> KnownNames:
        written = [tool.name for tool in written_tools(suite, case)]
        written += [tool.name for tool in suite.provider_tools]
        return KnownNames((*written, *known_names), tuple(prefixes))

    without_own_tools: KnownNames | None = None
    for index, case in zip(case_indices, suite.cases, strict=True):
        if case.tools:
            names = names_for(case)
        else:
            names = without_own_tools = without_own_tools or names_for(case)
        for found in unknown_names(suite, case, names):
            yield warning(("cases", index, *found.place), found.message, found.hint, found.kind)


def _new_names(suite: Suite, case_indices: Iterable[int], known: KnownNames) -> Iterator[Finding]:
    """Find tools that the suite does not define, so that only the subject can have them.

    Each tool is reported once, at the first call that names it."""
    found: set[str] = set()
    for index, case in zip(case_indices, suite.cases, strict=True):
        for at, call in case.written_calls():
            name = call.tool
            if not name or name == ANY_TOOL or name in found or call.unlisted or known.has(name, loosely=True):
                continue
            found.add(name)
            hint = "define it in [[tools]] to check its arguments"
            if known.names:
                hint = f"{known.hint(name)}; {_ON_PURPOSE}"
            message = f"only the subject can have {name!r}: the suite defines no such tool"
            yield warning(("cases", index, *at, "tool"), message, hint, "tool of the subject")
