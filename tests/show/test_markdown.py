from __future__ import annotations

from html import unescape

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.show.markdown import tables
from tests.tables import each_row
from workbench.analysis.batch_diff import BatchDiff, CaseChange, CaseSide
from workbench.grading.status import Status
from workbench.history.records import SuiteRef
from workbench.show.markdown import code, document, table, text, text_table
from workbench.show.views.batch_diff import diff_view
from workbench.show.visible import one_line

NAMES = st.text(st.characters() | st.sampled_from("|`\\*_[](){}<>#~&$!@:/.-+ \n"), min_size=1)
LIVE = "![a](https://example.org/b.png) <img src=x> @alice #12 a|b"


@given(NAMES)
def test_any_text_in_a_table_is_shown_and_nothing_else(name: str) -> None:
    (shown,) = tables(text_table(("name", "n"), [(name, "1")]))
    assert shown == [["name", "n"], [one_line(name).strip(), "1"]]


@given(NAMES)
def test_any_code_is_shown_and_nothing_else_in_a_table_and_outside(name: str) -> None:
    shown = one_line(name).strip()
    assert tables("\n".join(table(["name"], [[code(name)]])))[0][1] == [shown]
    inline = MarkdownIt("commonmark").renderInline(f"x{code(name)}x")
    assert unescape(inline) == (f"x<code>{shown}</code>x" if shown else "xx")


@given(NAMES)
def test_any_text_is_shown_and_nothing_else_outside_a_table(name: str) -> None:
    (inline,) = MarkdownIt("commonmark").parseInline(f"x {text(name)} x")
    assert "".join(child.content for child in inline.children or ()) == f"x {one_line(name).strip()} x"


@each_row("word", ["@alice", "owner/repo#1", "GH-1", "https://example.org", "www.example.org", ":+1:"])
def test_a_word_that_github_would_make_a_link_or_a_picture_of_is_code(word: str) -> None:
    assert text(f"ask_ {word} now") == f"ask\\_ `{word}` now"


def test_nothing_in_what_changed_between_two_batches_is_live() -> None:
    side = CaseSide("s.toml", LIVE, Status.FAILED, None, None, None, 0, 1, None, LIVE, (LIVE,))
    change = CaseChange("new", "s.toml", "a", LIVE, LIVE, None, side)
    diff = BatchDiff((change,), compared=1, left_out=0, cases=1, models=frozenset({LIVE, "b"}))
    suites = {"s.toml": SuiteRef(1, "", "s.toml", "", LIVE, 1)}
    markdown = document(diff_view(diff, suites, title=LIVE, tests=[], notes=[LIVE]))
    assert tables(markdown)[0][1:] == [["new", f"{LIVE} › {LIVE}", LIVE, f"failed, only in the later batch: {LIVE}"]]
    html = MarkdownIt("commonmark").enable("table").render(markdown)
    assert "<img" not in html and "<a " not in html
