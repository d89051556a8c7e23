"""A case's own TOML with its line numbers, and problems below the lines they are about."""

from __future__ import annotations

from pathlib import Path

from workbench.authoring.open_suite import OpenSuite
from workbench.show.spans import cells, plain
from workbench.suite.suite_file import parse_suite
from workbench.tui.case.excerpt_view import case_excerpt, excerpt_lines, file_excerpt

TEXT = """format = 1
name = "S"
models = ["offline"]

# The first.
[[cases]]
name = "One"
user = "x"

[[cases]]
name = "Two"
user = "y"
extra_calls = "allow"
"""


def suite(text: str = TEXT) -> OpenSuite:
    return OpenSuite(parse_suite(text, Path("s.toml")))


def rows(text: str, case: int | None, width: int = 60) -> list[str]:
    excerpt = case_excerpt(suite(text), case) if case is not None else file_excerpt(suite(text))
    return [plain(line) for line in excerpt_lines(excerpt, width)[0]]


def test_a_case_is_shown_with_the_comment_above_it_and_its_lines() -> None:
    assert rows(TEXT, 0) == ["  5  # The first.", "  6  [[cases]]", '  7  name = "One"', '  8  user = "x"']


def test_a_suite_is_shown_up_to_its_first_case() -> None:
    assert rows(TEXT, None) == ["  1  format = 1", '  2  name = "S"', '  3  models = ["offline"]']


def test_a_problem_stands_below_the_line_of_the_case_that_it_is_about() -> None:
    shown = rows(TEXT.replace('user = "x"', 'usr = "x"'), 0)
    below = shown.index('  8  usr = "x"') + 1
    assert shown[below].startswith("   ▲ ")
    assert any(line.strip() == "did you mean `user`?" for line in shown)
    assert rows(TEXT.replace('user = "x"', 'usr = "x"'), 1)[-1] == ' 13  extra_calls = "allow"'


def test_a_file_that_is_no_toml_shows_where_it_breaks() -> None:
    shown = rows('format = 1\nname = "S\nx = 1\n', None)
    assert shown[1] == '  2  name = "S'
    assert shown[2].startswith("   ▲ is not TOML")


def test_long_lines_are_wrapped_below_themselves() -> None:
    long = TEXT.replace('user = "x"', f'user = "{"word " * 30}"')
    excerpt = case_excerpt(suite(long), 0)
    laid_out, starts = excerpt_lines(excerpt, 40)
    assert all(cells(line) <= 40 for line in laid_out)
    assert starts[8] == 3
    assert len(laid_out) > 4


def test_the_text_of_an_excerpt_is_the_file_s_own() -> None:
    excerpt = case_excerpt(suite(TEXT.replace("One", "One \\u001b[31m")), 0)
    assert excerpt.text.startswith("# The first.\n[[cases]]\n")
