"""Finds tool names in a suite for which there is no tool: no model can be blamed for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches

from workbench.dataclasses import ByIdentity, dataclass
from workbench.suite.model import ANY_TOOL, Case, ExtraCalls, Mock, Suite, comparable_name, written_tools
from workbench.suite.problems import Finding, Place, warning

_MAX_LISTED = 8
_ON_PURPOSE = "write unlisted = true if this is intended"


@dataclass(frozen=True)
class KnownNames:
    """The names of the existing tools.

    A server whose tools are not known may have any name that begins with its prefix; `prefixes` are those of such
    servers."""

    names: Collection[str]
    prefixes: tuple[str, ...] = ()

    def has(self, name: str, *, loosely: bool = False) -> bool:
        """Return whether there is, or may be, a tool of that name; `loosely` compares comparable names."""
        if name in self.names or any(name.startswith(prefix) for prefix in self.prefixes):
            return True
        return loosely and comparable_name(name) in map(comparable_name, self.names)

    def hint(self, name: str) -> str:
        """Return the nearest name as a question, or else the existing names."""
        nearest = get_close_matches(name, self.names, n=1, cutoff=0.6)
        if nearest:
            return f"did you mean {nearest[0]!r}?"
        if not self.names:
            return "no tools are defined: write them as [[tools]], or name a server"
        more = f" and {len(self.names) - _MAX_LISTED} more" if len(self.names) > _MAX_LISTED else ""
        return f"available: {', '.join([*self.names][:_MAX_LISTED])}{more}"


def unknown_names(suite: Suite, case: Case, known: KnownNames) -> Iterator[Finding]:
    """Find the tools that a case offers, expects, forbids or mocks although there is none of that name.

    Places are inside the case."""
    for index, name in enumerate(case.offer or ()):
        if not known.has(name):
            yield warning(("offer", index), f"offers {name!r}, but there is no such tool", known.hint(name))
    for rule_place, rule in (
        (("extra_calls",), case.extra_calls),
        (("grading", "extra_calls"), case.grading.extra_calls),
    ):
        yield from _unknown_free(rule, rule_place, known)
    offered = known if case.offer is None else KnownNames(case.offer)
    by = case.grading.by or suite.grading.by or "critics"
    for at, call in case.written_calls():
        if call.tool is None or call.unlisted:
            continue
        place: Place = (*at, "tool")
        if call.tool == ANY_TOOL:
            if at[0] != "disallowed" and not offered.names and not offered.prefixes:
                yield warning(place, "expects a call, but no tool is offered", "offer one, or expect no call")
            continue
        if at[0] == "disallowed":
            if not known.has(call.tool, loosely=True):
                hint = f"{known.hint(call.tool)}; {_ON_PURPOSE}"
                yield warning(place, f"forbids {call.tool!r}, but there is no such tool", hint)
        elif not offered.has(call.tool, loosely=by == "critics"):
            message = f"expects {call.tool!r}, but no such tool is offered"
            if known.has(call.tool):
                yield warning(place, message, "add it to `offer`, or the model never sees it")
            else:
                yield warning(place, message, offered.hint(call.tool))
    yield from unknown_mocks(case.mocks, known)


def _unknown_free(rule: ExtraCalls | None, place: Place, known: KnownNames) -> Iterator[Finding]:
    """Find the tools that `extra_calls` lists although there is none of that name."""
    for index, name in enumerate(rule if isinstance(rule, tuple) else ()):
        if name != ANY_TOOL and not known.has(name, loosely=True):
            yield warning((*place, index), f"frees calls of {name!r}, but there is no such tool", known.hint(name))


def unknown_mocks(mocks: Iterable[Mock], known: KnownNames) -> Iterator[Finding]:
    """Find the mocks for tools that do not exist; places begin with `mocks`."""
    for index, mock in enumerate(mocks):
        if not mock.unlisted and not known.has(mock.tool):
            hint = known.hint(mock.tool)
            yield warning(("mocks", index, "tool"), f"mocks {mock.tool!r}, but there is no such tool", hint)


def names_for_all(suite: Suite, listed: Iterable[str], prefixes: Iterable[str] = ()) -> KnownNames:
    """Return the tools that any case of the suite has; `listed` are those of servers."""
    return KnownNames(tuple(dict.fromkeys([*_written_names(suite), *listed])), tuple(prefixes))


_written_names: ByIdentity[Suite, tuple[str, ...]] = ByIdentity(
    lambda suite: tuple(
        dict.fromkeys(tool.name for tools in (suite.tools, *(case.tools for case in suite.cases)) for tool in tools)
    )
)


def unknown_in_suite(
    suite: Suite, case_indices: Iterable[int], listed: Collection[str], prefixes: Collection[str]
) -> Iterator[Finding]:
    """Return all findings on tool names in a suite.

    `case_indices` are its cases' places in the file, `listed` the tools that servers are known to have, and `prefixes`
    those of the servers whose tools are not known."""
    known = names_for_all(suite, listed, prefixes)
    yield from unknown_mocks(suite.mocks, known)
    yield from _unknown_free(suite.grading.extra_calls, ("grading", "extra_calls"), known)
    for index, case in zip(case_indices, suite.cases, strict=True):
        written = [tool.name for tool in written_tools(suite, case)]
        for found in unknown_names(suite, case, KnownNames((*written, *listed), tuple(prefixes))):
            yield warning(("cases", index, *found.place), found.message, found.hint)
