"""Limits, grading and gate in a form: every key with its default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from workbench.authoring.form.row import Field, FormRow, FormSource, Limits, as_it_stands, field_row
from workbench.authoring.form.rows_calls import DETAIL, unknown_rows
from workbench.authoring.form.tables import ABSENT, value_at
from workbench.suite.model import GRADERS, REPEAT_RULES, ComparedBy, Gate, GatePer
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.settings import CriticsOptions, Grading, surplus_rule
from workbench.suite.settings import Limits as LimitsInForce
from workbench.suite.tables import EXTRA_CALLS_RULES, InvalidArguments, WholeNumbers

UNIT = Limits(0, 1)
GATE_PER: tuple[str, ...] = get_args(GatePer)
INVALID_ARGUMENTS: tuple[str, ...] = get_args(InvalidArguments)
WHOLE_NUMBERS: tuple[str, ...] = get_args(WholeNumbers)
COMPARED_BY: tuple[str, ...] = get_args(ComparedBy)

_TABLES: dict[Place, tuple[Field, ...]] = {
    ("limits",): (
        Field("max_rounds", "number", limits=Limits(1, whole=True)),
        Field("max_tool_calls", "number", limits=Limits(0, whole=True)),
        Field("max_latency_ms", "number", limits=Limits(0)),
        Field("timeout_s", "number", limits=Limits(0)),
    ),
    ("grading",): (
        Field("by", "choice", choices=GRADERS),
        Field("fail_threshold", "number", limits=UNIT),
        Field("warn_threshold", "number", limits=UNIT),
        Field("repeat_rule", "choice", choices=REPEAT_RULES),
        Field("invalid_arguments", "choice", choices=INVALID_ARGUMENTS),
        Field("whole_numbers", "choice", choices=WHOLE_NUMBERS),
        Field("extra_calls", "choice", choices=EXTRA_CALLS_RULES),
        Field("compare_by", "choice", choices=COMPARED_BY),
        Field("published_report", "yes_no"),
    ),
    ("grading", "critics"): (
        Field("tool_selection_weight", "number", limits=Limits(0)),
        Field("fail_on_tool_selection", "yes_no"),
        Field("fail_on_tool_call_quantity", "yes_no"),
        Field("arcade_compatible", "yes_no"),
    ),
    ("grading", "accuracy"): (
        Field("mode", "choice", choices=("exact", "flexible")),
        Field("name_only", "number"),
        Field("extra_penalty", "number"),
        Field("wrong_penalty", "number"),
    ),
    ("grading", "dimensions"): (
        Field("latency", "choice", choices=("wall", "model")),
        Field("repeated_calls", "choice", choices=("as expected", "as published")),
    ),
    ("gate",): (
        Field("min_score", "number", limits=UNIT),
        Field("min_pass_rate", "number", limits=UNIT),
        Field("per", "choice", choices=GATE_PER),
        Field("quarantine", "names"),
        Field("endpoint_faults", "choice", choices=("fail", "error")),
    ),
}
"""The keys of each settings table."""

_OF_SUITE_ALONE: dict[Place, tuple[Field, ...]] = {("limits",): (Field("batch_cost_usd", "number", limits=Limits(0)),)}
"""Further keys that a suite has and a case has not."""

_DEFAULTS: dict[str, object] = {"limits": LimitsInForce(), "grading": Grading(), "gate": Gate.model_construct()}


def settings_rows(source: FormSource, key: str, *, rare: bool) -> Iterator[FormRow]:
    """Yield the rows of `limits`, `grading` or `gate`, for a case or for the suite."""
    for place in _TABLES:
        if place[0] == key:
            yield from _table_rows(source, place, rare or len(place) > 1)


def _table_rows(source: FormSource, place: Place, rare: bool) -> Iterator[FormRow]:
    written = value_at(source.table, place)
    if written is not ABSENT and not isinstance(written, dict):
        yield as_it_stands(place, 0, written, ".".join(map(str, place)))
        return
    table: Table = written if isinstance(written, dict) else {}
    below = {inner[-1] for inner in _TABLES if inner[:-1] == place}
    yield FormRow("section", place, 0, " ".join(map(str, place)), absent=not table, rare=rare)
    fields = _TABLES[place] if source.is_case else (*_TABLES[place], *_OF_SUITE_ALONE.get(place, ()))
    # A case has its rule about surplus calls beside what it expects.
    shown = [each for each in fields if each.key in table or not (source.is_case and each.key == "extra_calls")]
    rows = [field_row(table, place, _with_default(source, place, field, rare), 1 + DETAIL) for field in shown]
    known = (*(field.key for field in fields), *map(str, below))
    yield from [*rows, *unknown_rows(table, place, 1 + DETAIL, known)]


def _with_default(source: FormSource, place: Place, field: Field, rare: bool) -> Field:
    at = (*place, field.key)
    inherited = value_at(source.header, at) if source.is_case else ABSENT
    value: object = inherited
    if inherited is ABSENT and place[0] in _DEFAULTS:
        value = _DEFAULTS[str(place[0])]
        for part in at[1:]:
            value = getattr(value, str(part), None)  # what a suite alone has is not among the options in force
    text = default_text(value, inherited is not ABSENT)
    if field.key == "extra_calls" and inherited is ABSENT:
        text = surplus_default(source)
    return Field(field.key, field.kind, text, rare, field.choices, limits=field.limits)


def surplus_default(source: FormSource) -> str:
    """Return the default of `extra_calls`: that of the suite, else the rule of the grader in force."""
    of_suite = value_at(source.header, ("grading", "extra_calls")) if source.is_case else ABSENT
    if of_suite is not ABSENT:
        return default_text(of_suite, True)
    by = _in_force(source, ("grading", "by"), "critics")
    quantity = _in_force(source, ("grading", "critics", "fail_on_tool_call_quantity"), True)
    if by not in GRADERS or not isinstance(quantity, bool):
        return "the grader's own rule"
    rule = surplus_rule(Grading(by=by, critics=CriticsOptions(fail_on_tool_call_quantity=quantity)))
    return rule.removesuffix(" for the run")


def _in_force(source: FormSource, place: Place, default: object) -> object:
    """Return an option as the case or else the suite writes it."""
    own = value_at(source.table, place)
    value = value_at(source.header, place) if own is ABSENT else own
    return default if value is ABSENT else value


def default_text(value: object, of_suite: bool) -> str:
    """Return the text of a default, marked if it comes from the suite."""
    match value:
        case bool():
            text = "yes" if value else "no"
        case float():
            text = f"{value:g}"
        case list() | tuple():
            text = ", ".join(map(str, value)) or "none"
        case "":
            text = '""'
        case _:
            text = "none" if value is ABSENT or value is None else str(value)
    return f"suite: {text}" if of_suite else text
