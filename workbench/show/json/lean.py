"""The lean JSON report of a batch, version 2: version 1 without repeated arguments.

In version 1, each of the five grades of a run repeats the expected and actual value of each argument. Here a run has
these values in `checked`, and grades refer to them. The schema is committed as `docs/lean-report.schema.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from workbench.show.json.base import Finite, ReportModel
from workbench.show.json.records import Records, document_pieces
from workbench.show.json.report import ReportDocument
from workbench.show.json.run_report import GradeReport, PairingReport, RunReport
from workbench.show.views.runs_report import Redactor


class CheckedReport(ReportModel):
    """An argument of an expected or an actual call that graders checked."""

    expected_call: int | None = Field(description="index of the expected call, from 0")
    call: int | None = Field(description="index of the actual call, from 0")
    argument: str
    expected: str
    got: JsonValue
    given: bool


class LeanArgumentReport(ReportModel):
    """The result of one grader's check of an argument."""

    checked: int = Field(description="index of the argument in the run's `checked`, from 0")
    holds: bool | None
    score: Finite
    weight: float
    why: str
    listed: bool
    required: bool


class LeanPairingReport(PairingReport):
    """An expected call and the actual call it was paired with, by index from 0."""

    arguments: tuple[LeanArgumentReport, ...]  # type: ignore[assignment]


class LeanGradeReport(GradeReport):
    """The result of one grader for the run; the first grader decides the status, the others are only reported."""

    pairings: tuple[LeanPairingReport, ...]


class LeanRunReport(RunReport):
    """One run of a case with a model.

    `repeat` counts from 0."""

    grades: tuple[LeanGradeReport, ...]
    checked: tuple[CheckedReport, ...] = Field(description="the arguments that the grades refer to, each once")


class LeanReportDocument(ReportDocument):
    """A whole batch."""

    model_config = ConfigDict(title="LeanReport")  # the name in the schema

    version: Literal[2] = 2  # type: ignore[assignment]
    runs: tuple[LeanRunReport, ...]


_SAID_ONCE = ("argument", "expected", "got", "given")


def lean_run(run: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `LeanRunReport` for those of a `RunReport`."""
    checked: list[dict[str, Any]] = []
    places: dict[tuple[Any, ...], list[int]] = {}
    grades = []
    for grade in run["grades"]:
        pairings = []
        for pairing in grade["pairings"]:
            calls = (pairing["expected_call"], pairing["call"])
            arguments = []
            for argument in pairing["arguments"]:
                said = {name: argument[name] for name in _SAID_ONCE}
                # Values may be unhashable, so the search compares the values of the same calls and name.
                known = places.setdefault((*calls, argument["argument"]), [])
                place = next((each for each in known if _is_same(checked[each], said)), None)
                if place is None:
                    place = len(checked)
                    known.append(place)
                    checked.append({"expected_call": calls[0], "call": calls[1], **said})
                others = {name: value for name, value in argument.items() if name not in _SAID_ONCE}
                arguments.append({"checked": place, **others})
            pairings.append({**pairing, "arguments": arguments})
        grades.append({**grade, "pairings": pairings})
    return {**run, "grades": grades, "checked": checked}


def _is_same(known: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    # Values are compared as text, because 1, 1.0 and true are equal in Python and differ in JSON.
    return all(repr(known[name]) == repr(said[name]) for name in _SAID_ONCE)


def lean_pieces(document: ReportDocument, records: Mapping[str, Records[Any]], redactor: Redactor) -> Iterator[str]:
    """Yield the lean report as JSON text. `records` are the runs and cases that `document` lacks."""
    whole = LeanReportDocument.model_validate({**dict(document), "version": 2})
    return document_pieces(whole, {**records, "runs": records["runs"].shaped(lean_run)}, redactor)
