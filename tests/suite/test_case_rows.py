"""Cases with rows: one case for each row, equal to the case that a person would have written for it."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from workbench.suite.render import suite_text
from workbench.suite.suite_file import Excerpts, SuiteFile, case_blocks, lines_of, parse_suite

REFUND = """\
format = 1
name = "Shop"

# Refunds of all sizes.
[[cases]]
id = "refund"
name = "Refund {order}"
user = "Refund {order}, {{please}}."
each = EACH
mocks = [{ tool = "refund", result = "{row.amount} for {order}" }]
[[cases.ordered]]
tool = "refund"
args = { order = "{order}", amount = "{amount}" }

[[cases]]
name = "Hello"
user = "Hello {there}."
expect_no_calls = true
"""


def refund(each: str, folder: Path = Path()) -> SuiteFile:
    return parse_suite(REFUND.replace("EACH", each), folder / "shop.toml")


INLINE = '[{ id = "small", order = "A-17", amount = 5 }, { id = "big", order = "B-2", amount = 700.5 }]'


def test_rows_are_cases_of_their_own(tmp_path: Path) -> None:
    tmp_path.joinpath("rows.csv").write_text("id,order,amount:json\nsmall,A-17,5\nbig,B-2,700.5\n")
    tmp_path.joinpath("rows.jsonl").write_text(
        '{"id": "small", "order": "A-17", "amount": 5}\n\n{"id": "big", "order": "B-2", "amount": 700.5}\n'
    )
    inline = refund(INLINE)
    assert [str(problem) for problem in inline.problems if problem.severity == "error"] == []
    assert inline.suite is not None
    small, big, hello = inline.suite.cases
    assert (small.id, small.name, small.cluster, small.user) == (
        "refund/small",
        "Refund A-17",
        "refund",
        "Refund A-17, {please}.",
    )
    assert (big.id, hello.id, hello.user) == ("refund/big", "hello", "Hello {there}.")
    assert hello.cluster is None
    assert inline.templates == (0, 0, 1)
    for name in ("rows.csv", "rows.jsonl"):
        assert refund(f'"{name}"', tmp_path).suite == inline.suite
    line_of = lines_of([inline.standalone])
    assert [line_of("shop.toml", case.id) for case in inline.suite.cases] == [5, 5, 15]


def test_a_row_alone_is_read_again_as_the_same_case() -> None:
    file = refund(INLINE)
    assert file.suite is not None
    standalone = parse_suite(file.standalone.text, file.path)
    assert standalone.suite == file.suite
    assert standalone.templates == () and standalone.standalone is standalone
    assert "# Refunds of all sizes." in standalone.text
    changed = refund(INLINE.replace("A-17", "A-18"))
    before, after = Excerpts(), Excerpts()
    for case in file.suite.cases:
        text = before.of(file, case.id)
        alone = parse_suite(text, file.path).suite
        assert alone is not None and alone.cases == (case,)
        assert (after.of(changed, case.id) == text) is (case.id != "refund/small")
    assert [block[0] for block in case_blocks(file) or ()] == ["refund/small", "refund/big", "hello"]


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)
SCALARS = TEXTS | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)


@given(value=VALUES, before=TEXTS, after=TEXTS)
def test_filling_is_exact(value: object, before: str, after: str) -> None:
    def braced(text: str) -> str:
        return text.replace("{", "{{").replace("}", "}}")

    document = {
        "format": 1,
        "name": "Exact",
        "cases": [
            {
                "name": "Row",
                "user": braced(before) + "{column}" + braced(after) + ".",
                "setup": [
                    {"tool": "t", "args": {"x": "{column}", "deep": [{"y": "{column}"}], "plain": braced(before)}}
                ],
                "each": [{"id": "one", "column:json": json.dumps(value)}, {"id": "two", "column": "other"}],
                "expect_no_calls": True,
            }
        ],
    }
    file = parse_suite(suite_text(document), Path("exact.toml"))
    assert file.suite is not None, file.problems
    case = file.suite.cases[0]
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert case.user is not None and case.user.startswith(before) and case.user.endswith(f"{after}.")
    middle = case.user[len(before) : len(case.user) - len(after) - 1]
    assert middle == written or json.loads(middle) == value
    args = case.setup[0].args
    assert json.dumps(args) == json.dumps({"x": value, "deep": [{"y": value}], "plain": before})
    assert parse_suite(file.standalone.text, file.path).suite == file.suite
