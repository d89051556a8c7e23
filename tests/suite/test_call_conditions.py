"""`before`, `after`, `duplicate_calls` and `at_most` in suites: problems, names, trust, variants and the audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.analysis.audit.audit import audit_suite
from workbench.suite.suite_file import parse_suite
from workbench.suite.trust import needs_trust
from workbench.suite.variants import varied_case

HEAD = """
format = 1
name = "Shop"
tools = [
  { name = "verify", annotations = { readOnlyHint = true } },
  { name = "refund", parameters = { type = "object", properties = { order = { type = "string" } } } },
]
[grading]
extra_calls = "allow_read_only"
[[cases]]
name = "Refund"
user = "Refund order A7."
"""

EXPECTED = '[[cases.ordered]]\ntool = "refund"\nargs = { order = "A7" }\n'


def prohibited(condition: str) -> str:
    return f'[[cases.disallowed]]\ntool = "refund"\n{condition}\n'


@each_row(
    ("case", "said"),
    [
        (prohibited('before = { tool = "verify", times = 2 }'), "before.times: `times` has no meaning in `before`"),
        (
            prohibited('after = { tool = "verify", because = "x" }'),
            "after.because: `because` has no meaning in `after`",
        ),
        (prohibited("before = { is_error = true }"), "before.tool: `tool` is missing"),
        (prohibited('before = "verify"'), "before: must be a table"),
        (prohibited('before = { tool = "verify", arg = {} }'), "before.arg: unknown key `arg` in an expected call"),
        (
            prohibited('before = { tool = "verfy" }'),
            "before.tool: asks for calls of 'verfy', but there is no such tool",
        ),
        (prohibited("before = { any_of = [] }"), "before.any_of: must not be empty"),
        ('duplicate_calls = "allow"', "duplicate_calls: must be"),
        ("at_most = { token = 5 }", "at_most.token: unknown key `token` in `at_most`"),
        ("at_most = { calls = -1 }", "at_most.calls: must be at least 0"),
        (f"at_most = {{ calls = 0 }}\n{EXPECTED}", "at_most.calls = 0 conflicts with 1 expected call"),
    ],
)
def test_problems_of_conditions_name_their_place(case: str, said: str) -> None:
    problems = parse_suite(HEAD + case, Path("s.toml")).problems
    assert said in "\n".join(f"{problem.where}: {problem.message}" for problem in problems)


CONDITION = prohibited('before = { tool = "verify", result = { python = "checks:is_verified" } }')


def test_a_function_in_a_condition_needs_trust(tmp_path: Path) -> None:
    suite = parse_suite(HEAD + CONDITION, tmp_path / "s.toml").suite
    assert suite is not None
    assert needs_trust(suite, tmp_path / "s.toml").python == ("checks:is_verified",)


def test_a_variant_renames_the_tools_of_conditions() -> None:
    changes = '[[variants]]\nname = "v"\n[[variants.changes]]\ntool = "verify"\nname = "check"\n'
    suite = parse_suite(HEAD + prohibited('before = { tool = "verify" }') + changes, Path("s.toml")).suite
    assert suite is not None
    (call,) = varied_case(suite.cases[0], suite.variants[0]).disallowed
    assert call.tool == "refund" and call.before is not None and call.before.tool == "check"


@pytest.mark.parametrize(
    ("extra_calls", "case", "found"),
    [
        ("allow_read_only", 'before = { tool = "verify", is_error = false }', []),
        # A call that no rule allows cannot come first.
        ("forbid", 'before = { tool = "verify" }', ["out of reach"]),
        ("forbid", 'after = { tool = "verify" }', []),
    ],
)
def test_the_audit_knows_runs_that_heed_a_condition(extra_calls: str, case: str, found: list[str]) -> None:
    text = HEAD.replace("allow_read_only", extra_calls) + EXPECTED + prohibited(case)
    suite = parse_suite(text, Path("s.toml")).suite
    assert suite is not None
    assert [each.kind for each in audit_suite(suite, {}).findings] == found
