"""What `workbench capture` proposes: for a person, as TOML, as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Any, Literal

from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.markdown import block, code, table, text
from workbench.show.spans import Role
from workbench.show.text import Paint
from workbench.show.visible import one_line, visible
from workbench.suite.model import EXPECTATIONS
from workbench.suite.render import Table
from workbench.version import __version__

CaptureOutcome = Literal["proposed", "unchanged", "not agreed", "no runs", "skipped"]
"""What came of a case. `unchanged`: it expects that already. `not agreed`: no expectation lets all runs pass. `no
runs`: none of them ended as a run should."""

_SIGNS: dict[CaptureOutcome, tuple[str, Role]] = {
    "proposed": ("+", "passed"),
    "unchanged": Status.PASSED.mark,
    "not agreed": Status.FAILED.mark,
    "no runs": Status.ERROR.mark,
    "skipped": ("-", "muted"),
}
_TONES: dict[str, Role] = {"+": "passed", "-": "failed", "@": "muted"}


@dataclass(frozen=True, kw_only=True)
class CapturedCase:
    """What came of a case. `runs` is the number of those that counted; `left_out` says why others did not. `table` is
    the case with its new expectations, and `block` its text in the suite, where something is proposed."""

    case_id: str
    case_name: str
    outcome: CaptureOutcome
    runs: int = 0
    why: str = ""
    left_out: tuple[str, ...] = ()
    table: Table | None = None
    block: str = ""

    @property
    def said(self) -> str:
        """The outcome in words."""
        of_runs = f"{self.outcome} from {counted(self.runs, 'run')}" if self.outcome == "proposed" else self.outcome
        return f"{of_runs}: {self.why}" if self.why else of_runs


@dataclass(frozen=True, kw_only=True)
class CapturedSuite:
    """What came of the cases of a suite. `path` is shown; the texts are those of its file before and after."""

    path: str
    before: str
    after: str
    cases: tuple[CapturedCase, ...]

    @property
    def proposed(self) -> tuple[CapturedCase, ...]:
        """The cases for which something is proposed."""
        return tuple(case for case in self.cases if case.outcome == "proposed")

    @property
    def difference(self) -> list[str]:
        """The change of the file as a unified diff, without line ends."""
        return [*unified_diff(_lines(self.before), _lines(self.after), self.path, self.path, lineterm="")]


def text_of_capture(suites: Iterable[CapturedSuite], paint: Paint) -> Iterator[str]:
    """Yield the outcomes, then the difference of each file, for a person."""
    for suite in suites:
        yield f"{paint(one_line(suite.path), 'strong')}\n"
        for case in suite.cases:
            sign, tone = _SIGNS[case.outcome]
            yield f"  {paint(sign, tone)} {one_line(case.case_id)}: {one_line(case.said)}\n"
            for why in case.left_out:
                yield f"    {paint(one_line(f'left out: {why}'), 'muted')}\n"
        if difference := suite.difference:
            yield "\n"
            for line in difference:
                yield f"{paint(visible(line), _TONES.get(line[:1], 'text'))}\n"
        yield "\n"


def toml_of_capture(suites: Sequence[CapturedSuite]) -> Iterator[str]:
    """Yield the cases for which something is proposed, as they would stand in their suites."""
    for suite in suites:
        if suite.proposed:
            yield f"# {one_line(suite.path)}\n"
            yield from (f"{case.block.rstrip()}\n\n" for case in suite.proposed)


def json_of_capture(suites: Iterable[CapturedSuite], exit_code: int) -> dict[str, Any]:
    """Return everything, and the expectations as tables."""
    cases = [
        {
            "suite": suite.path,
            "case_id": case.case_id,
            "case_name": case.case_name,
            "outcome": case.outcome,
            "why": case.why or None,
            "runs": case.runs,
            "left_out": list(case.left_out),
            "expectations": _expectations(case.table) if case.table is not None else None,
        }
        for suite in suites
        for case in suite.cases
    ]
    return {
        "report": "workbench capture",
        "version": 1,
        "workbench": __version__,
        "cases": cases,
        "exit_code": exit_code,
    }


def markdown_of_capture(suites: Iterable[CapturedSuite]) -> Iterator[str]:
    """Yield a table of the outcomes and the difference of each file."""
    for suite in suites:
        yield f"## {code(suite.path)}\n\n"
        rows = ([code(case.case_id), text(case.said), text("; ".join(case.left_out))] for case in suite.cases)
        yield from (f"{line}\n" for line in table(("case", "outcome", "runs left out"), rows))
        if difference := suite.difference:
            yield f"\n{block(difference)}\n"
        yield "\n"


def _expectations(case: Table) -> Table:
    return {key: case[key] for key in (*EXPECTATIONS, "steps") if key in case}


def _lines(whole: str) -> list[str]:
    return [line.removesuffix("\r") for line in whole.removesuffix("\n").split("\n")]
