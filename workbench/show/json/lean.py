"""The lean JSON report of a batch, version 3: version 1 without repetitions and without absent values.

In version 1, each of the five grades of a run repeats the expected and actual value of each argument. Here a run has
these values in `checked`, and grades refer to them. A key is left out if its value is its default in the schema, which
is null or empty for most keys. The schema is committed as `docs/lean-report.schema.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from workbench.dataclasses import compact_json
from workbench.show.json.base import Finite, ReportModel
from workbench.show.json.history import ShownBatch
from workbench.show.json.records import Records, document_pieces
from workbench.show.json.report import RegradedReport, ReportDocument
from workbench.show.json.run_report import GradeReport, PairingReport, RunReport
from workbench.show.views.runs_report import Redactor


class CheckedReport(ReportModel):
    """An argument that graders checked, with its expected and its actual value."""

    expected_call: int | None = Field(description="index of the expected call, from 0")
    call: int | None = Field(description="index of the actual call, from 0")
    argument: str
    expected: str
    got: JsonValue = Field(None, description="the actual value")
    given: bool


class LeanArgumentReport(ReportModel):
    """The result of one grader's check of an argument."""

    checked: int = Field(description="index of the argument in the run's `checked`, from 0")
    holds: bool | None
    score: Finite
    weight: float
    why: str
    listed: bool = True
    required: bool = False


class LeanPairingReport(PairingReport):
    """The pair of an expected call and an actual call, by their indices from 0."""

    arguments: tuple[LeanArgumentReport, ...]  # type: ignore[assignment]


class LeanGradeReport(GradeReport):
    """The result of one grader for the run. The first grader decides the status, and the others are only reported."""

    pairings: tuple[LeanPairingReport, ...]


class LeanRunReport(RunReport):
    """One run of a case with one model.

    `repeat` counts from 0."""

    grades: tuple[LeanGradeReport, ...]
    checked: tuple[CheckedReport, ...] = Field((), description="the arguments that the grades refer to, each once")


class LeanReportDocument(ReportDocument):
    """A whole batch."""

    model_config = ConfigDict(title="LeanReport")  # the name in the schema

    version: Literal[3]  # type: ignore[assignment]
    runs: tuple[LeanRunReport, ...]
    regraded: tuple[RegradedReport, ...] = Field((), description="of `workbench grade`: the recording of each run")


class LeanShownBatch(ShownBatch):
    """A batch in the output of `workbench history show --lean`."""

    version: Literal[3]  # type: ignore[assignment]


LeanReport = LeanReportDocument | LeanShownBatch
"""Every kind of lean report."""


def lean_schema() -> dict[str, Any]:
    """Return the schema of lean reports, in which each key that may be absent has a default."""
    schema = TypeAdapter(LeanReport).json_schema(mode="serialization")
    for each in schema["$defs"].values():
        for name, value in each.get("properties", {}).items():
            if "default" not in value and (default := _default_in_schema(value)) is not _NONE:
                value["default"] = default
                if name in each["required"]:
                    each["required"].remove(name)
    return schema


_NONE = object()


def _default_in_schema(value: Mapping[str, Any]) -> object:
    if {"type": "null"} in value.get("anyOf", ()):
        return None
    defaults: dict[str, object] = {"string": "", "array": [], "object": {}}
    if "const" in value or "enum" in value:
        return _NONE
    return defaults.get(value.get("type", ""), _NONE)


_CHECKED_ONCE = ("argument", "expected", "got", "given")
_GRADER_FIELDS = tuple(name for name in LeanArgumentReport.model_fields if name != "checked")


def lean_run(run: Any) -> dict[str, Any]:
    """Convert the fields of a `RunReport` to the fields of a `LeanRunReport`."""
    fields = dict(run)
    checked: list[dict[str, Any]] = []
    places: dict[tuple[Any, ...], int] = {}
    grades = []
    for grade in fields["grades"]:
        pairings = []
        for pairing in grade.pairings:
            calls = {"expected_call": pairing.expected_call, "call": pairing.call}
            arguments = []
            for argument in pairing.arguments:
                # Values are compared as text, because 1, 1.0 and true are equal in Python and differ in JSON.
                got = compact_json(argument.got)
                key = (*calls.values(), argument.argument, argument.expected, got, argument.given)
                place = places.setdefault(key, len(checked))
                if place == len(checked):
                    checked.append(calls | {name: getattr(argument, name) for name in _CHECKED_ONCE})
                arguments.append({"checked": place, **{name: getattr(argument, name) for name in _GRADER_FIELDS}})
            pairings.append(_fields_of(pairing, PairingReport, "arguments", arguments))
        grades.append(_fields_of(grade, GradeReport, "pairings", pairings))
    return {**fields, "grades": grades, "checked": checked}


def _fields_of(source: object, model: type[ReportModel], name: str, value: object) -> dict[str, Any]:
    """Return the fields of a model as a dictionary, read from `source`, but with `value` for the field `name`."""
    fields = {each: getattr(source, each) for each in model.model_fields}
    return {**fields, name: value}


def lean_batch_pieces(batch: ShownBatch, redactor: Redactor) -> Iterator[str]:
    """Yield a batch of the history as lean JSON text."""
    whole = LeanShownBatch.model_validate({**dict(batch), "version": 3})
    return document_pieces(whole, {}, redactor, lean=True)


def lean_pieces(document: ReportDocument, records: Mapping[str, Records[Any]], redactor: Redactor) -> Iterator[str]:
    """Yield the lean report as JSON text. `records` provides the records that `document` lacks."""
    lean = {name: replace(each, lean=True) for name, each in records.items()}
    lean["runs"] = replace(lean["runs"], shape=lean_run, shaped_as=LeanRunReport)
    whole = LeanReportDocument.model_validate({**dict(document), "version": 3})
    return document_pieces(whole, lean, redactor, lean=True)
