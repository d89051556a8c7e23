"""The proposals of `workbench accept` as text for people, as TOML and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Any, Literal

from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.doc import NONE, Block, Column, Diff, Section, Table, Value, line_of, words
from workbench.show.spans import Role
from workbench.show.visible import after, one_line
from workbench.suite.model import EXPECTATIONS
from workbench.suite.render import Table as TomlTable
from workbench.version import __version__

AcceptOutcome = Literal["proposed", "unchanged", "not agreed", "no runs", "skipped"]
"""The outcome for a case.

`unchanged`: the case already expects the calls. `not agreed`: no expectation lets all runs pass. `no runs`: no run
counted."""

OUTCOME_MARKS: dict[AcceptOutcome, tuple[str, Role]] = {
    "proposed": ("+", "passed"),
    "unchanged": Status.PASSED.mark,
    "not agreed": Status.FAILED.mark,
    "no runs": Status.ERROR.mark,
    "skipped": ("-", "muted"),
}
"""The sign of each outcome, and its role."""


@dataclass(frozen=True, kw_only=True)
class AcceptedCase:
    """A case, and the expectations that `workbench accept` proposes for it.

    `runs` is the number of runs from which the proposal was made. `left_out` says why other runs were not used. If
    there is a proposal, `table` is the case with its new expectations, and `block` is the text of the case in the
    suite."""

    case_id: str
    case_name: str
    outcome: AcceptOutcome
    runs: int = 0
    why: str = ""
    left_out: tuple[str, ...] = ()
    table: TomlTable | None = None
    block: str = ""

    @property
    def said(self) -> str:
        text: str = self.outcome
        if self.outcome == "proposed":
            text += f" from {counted(self.runs, 'run')}"
        return text + after(": ", self.why)


@dataclass(frozen=True, kw_only=True)
class AcceptedSuite:
    """A suite, and the cases for which `workbench accept` proposes expectations.

    `path` is the path to show. `before` and `after` are the text of the file before and after the change."""

    path: str
    before: str
    after: str
    cases: tuple[AcceptedCase, ...]

    @property
    def proposed(self) -> tuple[AcceptedCase, ...]:
        return tuple(case for case in self.cases if case.outcome == "proposed")

    @property
    def difference(self) -> list[str]:
        """The change of the file as a unified diff, without line ends."""
        return [*unified_diff(_lines(self.before), _lines(self.after), self.path, self.path, lineterm="")]


def accept_view(suites: Iterable[AcceptedSuite]) -> Iterator[Block]:
    """Yield the outcome for each case of the suites, and the difference of each suite's file."""
    for suite in suites:
        yield Section(line_of(one_line(suite.path)), [Table(_COLUMNS, suite.cases, _left_out)])
        if difference := suite.difference:
            yield Diff(difference)


_COLUMNS: tuple[Column[AcceptedCase], ...] = (
    Column("", lambda case: words(*OUTCOME_MARKS[case.outcome])),
    Column("case", lambda case: words(one_line(case.case_id)), gap=1),
    Column("outcome", lambda case: words(one_line(case.said))),
)


def _left_out(case: AcceptedCase) -> Value:
    if not case.left_out:
        return NONE
    return words(one_line(f"left out: {'; '.join(case.left_out)}"), "muted")


def toml_of_accept(suites: Sequence[AcceptedSuite]) -> Iterator[str]:
    """Yield the cases that have a proposal as the TOML of a suite."""
    for suite in suites:
        if suite.proposed:
            yield f"# {one_line(suite.path)}\n"
            for case in suite.proposed:
                yield f"{case.block.rstrip()}\n\n"


def json_of_accept(suites: Iterable[AcceptedSuite], exit_code: int) -> dict[str, Any]:
    """Return the outcomes of all cases as a JSON object, with the expectations as tables."""
    cases = []
    for suite in suites:
        for case in suite.cases:
            cases.append(_json_of_case(suite, case))
    return {
        "report": "workbench accept",
        "version": 1,
        "workbench": __version__,
        "cases": cases,
        "exit_code": exit_code,
    }


def _json_of_case(suite: AcceptedSuite, case: AcceptedCase) -> dict[str, Any]:
    return {
        "suite": suite.path,
        "case_id": case.case_id,
        "case_name": case.case_name,
        "outcome": case.outcome,
        "why": case.why or None,
        "runs": case.runs,
        "left_out": list(case.left_out),
        "expectations": _expectations(case.table),
    }


def _expectations(case: TomlTable | None) -> TomlTable | None:
    if case is None:
        return None
    return {key: case[key] for key in (*EXPECTATIONS, "steps") if key in case}


def _lines(whole: str) -> list[str]:
    # Line ends of Windows must not count as a difference.
    return [line.removesuffix("\r") for line in whole.removesuffix("\n").split("\n")]
