"""Defines a new kind of check by its class alone, and exercises every feature that uses checks.

This is a separate program, because the models of suites contain the kinds that exist at their first use."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from workbench.analysis.audit.audit import audit_suite
from workbench.analysis.audit.vacuous_checks import other_values
from workbench.authoring.form.argument_schemas import mark
from workbench.authoring.form.cells import options_of, value_text, with_kind, with_option, with_text
from workbench.authoring.form.completions import complete
from workbench.checks.check import (
    CHECK_CLASSES,
    CheckBase,
    CheckContext,
    CheckVerdict,
    ReplacedCheck,
    describe,
    evaluate,
    plain_verdict,
    read_check,
)
from workbench.checks.fields import NUMBERS, Number
from workbench.suite.render import to_toml_data
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import JsonValue
from workbench.trajectory.json_schema import Schema, is_number


class MultipleOf(CheckBase):
    """A number that is a multiple of another."""

    kind = "multiple_of"
    written = "multiple_of = n"
    meaning = "a multiple of this number"
    typed = "a number"
    options: ClassVar = {"least": "the least multiple that holds"}
    types = NUMBERS

    multiple_of: Number
    least: Number = 0

    def describe(self, write_value: Callable[[JsonValue], str]) -> str:
        return f"a multiple of {write_value(self.multiple_of)}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not is_number(value):
            return CheckVerdict(0.0, False, "not a number")
        return plain_verdict(value % self.multiple_of == 0 and value >= self.least, "no multiple")

    def samples(self) -> tuple[JsonValue, ...]:
        return (self.multiple_of,)

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"multiple_of": start.values[0]}


def suite_of(schema: str, check: str, repeat: str = "unordered") -> str:
    properties = f"properties = {{ count = {schema}, note = {{ type = 'string' }} }}, required = ['count', 'note']"
    return f"""format = 1
name = "One"
tools = [{{ name = "pack", parameters = {{ type = "object", {properties} }} }}]

[[cases]]
name = "Ten eggs"
user = "Pack ten eggs."
{repeat} = [{{ tool = "pack", args = {{ count = {check}, note = "eggs" }} }}]
"""


def problems(check: str) -> list[str]:
    return [problem.message for problem in parse_suite(suite_of("{}", check), Path("one.toml")).problems]


def audited(schema: str, check: str = "{ multiple_of = 5 }") -> list[str]:
    suite = parse_suite(suite_of(schema, check), Path("one.toml")).suite
    assert suite is not None
    return [f"{found.kind}: {found.message}" for found in audit_suite(suite, {}).findings if found.kind != "weak case"]


NUMBER: Schema = {"type": "integer"}
CHECK = read_check({"multiple_of": 5})
LOADED = parse_suite(suite_of("{}", "{ multiple_of = 5, least = 10 }"), Path("one.toml")).suite
assert LOADED is not None
ARGS = LOADED.cases[0].expected_calls()[0].args
assert ARGS is not None


def offered(schema: Schema) -> list[str]:
    return [f"{one.text}: {one.detail}" for one in complete("check", "multiple", schema=schema)]


sys.stdout.write(
    json.dumps(
        {
            "evaluated": [evaluate(CHECK, 10).holds, evaluate(CHECK, 7).note, evaluate(CHECK, None, False).note],
            "described": describe(CHECK),
            "written": to_toml_data(ARGS["count"]),
            "refused": [*problems("{ multiple_of = 'x' }"), *problems("{ multiple_of = 5, most = 10 }")],
            "unreachable": [
                audited("{ type = 'string' }"),
                audited("{ enum = [1, 2, 3] }"),
                audited("{ type = 'integer' }"),
            ],
            "misses": next(other_values(CHECK, NUMBER)),
            "offered": [offered(NUMBER), offered({"type": "string"})],
            "changed": [
                with_kind(7, "multiple_of", NUMBER),
                with_text({"multiple_of": 5}, "6", NUMBER),
                value_text({"multiple_of": 5}),
                with_option({"multiple_of": 5}, "least", "10"),
                [cell.name for cell in options_of({"multiple_of": 5})],
                with_kind({"multiple_of": 5}, "one_of"),
            ],
            "marked": mark({"multiple_of": 5}, {"type": "string"}),
            "documented": [CHECK_CLASSES["multiple_of"].row(), CHECK_CLASSES["multiple_of"].typed],
        }
    )
)
