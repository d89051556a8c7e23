"""Cases with rows: one case for each row, equal to the case that a person would have written for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.suite.examples import HEAD
from tests.suite.problems import assert_only_problem
from tests.tables import each_row
from workbench.limits import MAX_ROWS
from workbench.suite.case_rows import filled_table
from workbench.suite.excerpts import Excerpts, case_blocks
from workbench.suite.render import suite_text
from workbench.suite.suite_file import SuiteFile, lines_of, parse_suite
from workbench.tools.mocks import mock_answer

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


ROWS = '[[cases]]\nname = "Refund {order}"\nuser = "Refund it."\neach = EACH\n'
ORDER = '{ order = "a" }'


def rows(each: str) -> str:
    return ROWS.replace("EACH", each)


@each_row(
    ("text", "where", "says", "hint"),
    [
        (rows("[{ oder = 'a' }]").replace("}\"", "}\" #!"), "cases[0].name",
         'there is no column "order"', "did you mean `oder`?"),
        (rows("[{ city = 'a' }]").replace("}\"", "}\" #!"), "cases[0].name",
         'there is no column "order"', "the columns are `city`; write {{ for a brace"),
        (rows("[] #!"), "cases[0].each", "must not be empty", "at least one row"),
        (rows("7 #!"), "cases[0].each", "the path of a file, or a list of tables", '"rows.csv"'),
        (rows("['a'] #!"), "cases[0].each[0]", "must be a table", "{ city = …"),
        (rows(f"[{ORDER}, {{ id = 'x', order = 'b' }}] #!"), "cases[0].each[0]", "row 1 has no `id`", "whole number"),
        (rows("[{ id = 1, order = 'a' }, { id = '1', order = 'b' }] #!"), "cases[0].each[1]",
         'two rows have the id "1": row 1 and row 2', "another id"),
        (rows(f"[{ORDER}, {{ other = 1 }}] #!"), "cases[0].each[1]", "row 2 has no `order`", "every row"),
        (rows("[{ 'order:json' = '{' }] #!"), "cases[0].each[0]", "`order:json` is not JSON", ""),
        (rows("'../rows.csv' #!"), "cases[0].each", "leads out of the folder", "copy the file"),
        (rows("'rows.xlsx' #!"), "cases[0].each", "is not a file of rows", ".csv or .jsonl"),
        (rows("'none.csv' #!"), "cases[0].each", "none.csv does not exist", "check the path"),
        (rows(f"[{ORDER}]") + "system = 'a } b' #!", "cases[0].system", "a single `}`", "write {{"),
        (rows(f"[{ORDER}, {ORDER}]") + "repeats = 0 #!", "cases[0].repeats", "must be at least 1, not 0", ""),
        (rows("[{ order = 1 }, { order = 'two' }]")
         + "ordered = [{ tool = 't', args = { x = { near = '{order}', tolerance = 1 } } }] #!",
         "cases[0].ordered[0].args.x.near", 'not the text "two", in row 2 (2)', ""),
        (rows("[{ order = { python = 'a:b' } }]")
         + "ordered = [{ tool = 't', args = { x = '{order}' } }] #!",
         "cases[0].ordered[0].args.x", "row 1: the value of `order` is a check with `python`", "into the suite"),
        (rows(f"[{ORDER}]") + "[[cases]]\nname = 'x'\nuser = 'x'\nid = 'refund-order/1' #!",
         "cases[1].id", "also cases[0]", "a different `id`"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_rows_is_said_at_its_place(text: str, where: str, says: str, hint: str) -> None:
    assert_only_problem(HEAD + text, where, says, hint)


@each_row(
    ("text", "where", "says"),
    [
        (rows("[{ order = 'a' }] #!").replace("{order}", "it"), "cases[0].each", "all rows ask the same"),
        (rows("[{ order = 'a', city = 'b' }] #!"), "cases[0].each", "names `city`"),
        (rows(f"[{ORDER}, {ORDER}]").replace("}\"", "}\" #!"), "cases[0].name", "two rows have the name"),
        (rows(f"[{ORDER}]") + "response = { judged = 'Is it {order}?' } #!", "cases[0].response.judged",
         "left as written"),
        (rows(f"[{ORDER}]")
         + "mocks = [{ tool = 't', unlisted = true, when = { x = { judged = 'is {row.order}' } }, error = 'e' }] #!",
         "cases[0].mocks[0].when.x.judged", "left as written"),
        (rows(f"[{ORDER}]") + "tags = ['refunds', '{order}'] #!", "cases[0].tags[1]", "`tags` takes no columns"),
        (rows(f"[{ORDER}]") + "skip = 'not {order}' #!", "cases[0].skip", "`skip` takes no columns: {order} stays"),
        (rows(f"[{ORDER}]") + "disallowed = [{ tool = 't', unlisted = true, because = 'of {order}' }] #!",
         "cases[0].disallowed[0].because", "`because` takes no columns: {order} stays"),
        (rows(f"[{ORDER}]") + "[[mocks]]\ntool = 't'\nunlisted = true\nerror = 'e'\nwhen = { x = '{row.order}' } #!",
         "mocks[0].when", "stay as written in `when` of a mock of the suite: `order`"),
    ],
)  # fmt: skip
def test_rows_that_may_be_meant_otherwise_are_warned_of(text: str, where: str, says: str) -> None:
    assert_only_problem(HEAD + text, where, says, "", "warning")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("r.csv", b"order,n\na,1\n\nb\n", "r.csv:4 has 1 cell, and the first line names 2 columns"),
        ("r.csv", b"order,n:json\na,1\nb,{\n", "r.csv:3: `n:json` is not JSON"),
        ("r.csv", b'order\n"a', "r.csv:2 is not CSV: unexpected end of data"),
        ("r.csv", b"order\na\n" + b"b" * 131_073, "r.csv:3 has a cell of more than 131,072 characters"),
        ("r.csv", b"order,order:json\na,1\n", "r.csv:1: two columns have the name `order`"),
        ("r.csv", b"order,\na,1\n", "r.csv:1: column 2 has no name"),
        ("r.csv", b"order;n\na;1\n", 'r.csv:1 holds one column, "order;n"'),
        ("r.csv", b"order\n", "r.csv has no rows"),
        ("r.csv", b" \n", "r.csv is empty"),
        ("r.csv", b"order\n\xff\n", "r.csv:2 is not UTF-8"),
        ("r.csv", b"order\n" + b"a\n" * (MAX_ROWS + 1), "r.csv has more than 20,000 rows"),
        ("r.jsonl", b'{"order": "a"}\n\n[1]\n', "r.jsonl:3: a row must be an object, not a list"),
        ("r.jsonl", b'{"order": "a"}\n{"order": 1e999}\n', "r.jsonl:2: holds a number that is too large"),
        ("r.jsonl", b'{"order": "a"}\n{"order": NaN}\n', "r.jsonl:2: is not JSON: JSON has no NaN"),
        ("r.jsonl", b'{"order": ' + b"[" * 99 + b"]" * 99 + b"}", "r.jsonl:1: is nested too deeply"),
        ("r.jsonl", b'{"order": "a", "order": "b"}', 'r.jsonl:1: has "order" twice in one object'),
        ("r.jsonl", b'{"order": "\\ud800"}', "r.jsonl:1: holds half of a character"),
    ],
)
def test_a_file_of_rows_is_wrong_at_its_line(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    tmp_path.joinpath(name).write_bytes(content)
    (problem,) = refund(f'"{name}"', tmp_path).problems
    assert problem.line == 9
    assert says in problem.message


def test_a_file_of_rows_stays_in_the_folder_of_the_suite(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    tmp_path.joinpath("rows.csv").write_text("order,amount\na,1\n")
    suites.joinpath("linked.csv").symlink_to(tmp_path / "rows.csv")
    assert "leads out of the folder of the suite" in str(refund('"linked.csv"', suites).problems[0])
    suites.joinpath("rows.csv").write_bytes(b'\xef\xbb\xbforder , amount\r\n"a,\r\n""b""",\r\n')
    file = refund('"rows.csv"', suites)
    assert file.suite is not None
    assert file.suite.cases[0].row == {"id": "1", "order": 'a,\r\n"b"', "amount": ""}


def test_mocks_see_the_columns_and_a_written_case_is_answered_and_graded_alike() -> None:
    file = refund('[{ id = "odd", order = "{order}", amount = 5 }]')
    assert file.suite is not None
    case = file.suite.cases[0]
    (mock,) = case.mocks
    assert mock_answer(mock.result, {"order": "B"}, case.row).content == "5 for B"
    assert mock_answer({"n": "{row.amount}", "all": "{row.order} {row.none}"}, {"order": "B"}, case.row).content == (
        '{"n":5,"all":"{order} {row.none}"}'
    )
    written = parse_suite(suite_text({"format": 1, "name": "S", "cases": [filled_table(case)]}), file.path)
    assert written.suite is not None
    alone = written.suite.cases[0]
    assert alone.model_copy(update={"each": case.each, "mocks": case.mocks}) == case
    assert alone.mocks[0].result == "5 for {order}"


def test_names_of_arguments_fields_and_values_are_no_checks() -> None:
    suite = REFUND.replace(
        'args = { order = "{order}", amount = "{amount}" }',
        'args = { python = "p {order}", amount = "{order}", a = { has_fields = { judged = "{order}" } },'
        ' b = { equals = { python = "{order}" } }, c = { equals = "{amount}" } }',
    )
    file = parse_suite(suite.replace("EACH", '[{ id = "x", order = "o", amount = { python = "3" } }]'), Path("s.toml"))
    assert file.suite is not None, file.problems
    (call,) = file.suite.cases[0].expected_calls()
    assert {name: check.as_written() for name, check in (call.args or {}).items()} == {
        "python": "p o",
        "amount": "o",
        "a": {"has_fields": {"judged": "o"}},
        "b": {"equals": {"python": "o"}},
        "c": {"equals": {"python": "3"}},
    }


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
    assert case.request is not None and case.request.startswith(before) and case.request.endswith(f"{after}.")
    middle = case.request[len(before) : len(case.request) - len(after) - 1]
    assert middle == written or json.loads(middle) == value
    args = case.setup[0].args
    assert json.dumps(args) == json.dumps({"x": value, "deep": [{"y": value}], "plain": before})
    assert parse_suite(file.standalone.text, file.path).suite == file.suite
