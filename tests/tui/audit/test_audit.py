"""The audit in the app: marks in the tree, and the screen of findings."""

from __future__ import annotations

from pathlib import Path

from tests.tui.apps import opened, suites_in
from workbench.show.glyphs import GLYPHS
from workbench.tui.audit.screen import AuditList, AuditScreen

WEAK = """\
format = 1
name = "Weak"

[[tools]]
name = "look"
[tools.parameters]
type = "object"
[tools.parameters.properties.where]
enum = ["here", "there"]

[[cases]]
name = "Forbids only"
user = "Look here"
disallowed = [{ tool = "look" }]

[[cases]]
name = "Sound"
user = "Look here"
ordered = [{ tool = "look", args = { where = "there" } }]

[[cases]]
name = "Silence is meant"
user = "Do nothing"
expect_no_calls = true
"""


def marked(screen: str) -> list[str]:
    """The lines of the tree that have the mark."""
    return [line for line in screen.splitlines() if GLYPHS.audit in line]


async def test_cases_that_ask_too_little_are_marked_and_an_edit_takes_the_mark_away(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, weak=WEAK), size=(100, 24), audits=True) as app:
        await app.until(lambda: bool(marked(app.screen)))
        assert [line.split("│")[0].split()[1:3] for line in marked(app.screen)] == [["Forbids", "only"]]
        main = app.app.main
        suite = main.open_suites.suites[0]
        table = dict(suite.document.table(0)) | {"ordered": [{"tool": "look", "args": {"where": "there"}}]}
        del table["disallowed"]
        assert main.open_suites.change(suite, suite.document.with_case(0, table), "case edited")
        await app.until(lambda: not marked(app.screen))


async def test_the_screen_lists_findings_and_leads_to_the_case(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, weak=WEAK), size=(100, 24)) as app:
        await app.press("exclamation_mark")
        screen = app.app.screen
        assert isinstance(screen, AuditScreen)
        await app.until(lambda: "2 findings" in app.screen)
        assert "Forbids only  weak case" in app.screen
        assert "an agent that neither calls nor says anything passes" in app.screen
        assert "1 of 2 enum values" in app.screen
        rows = [row.target[1] for row in screen.query_one("#audit-list", AuditList).rows]
        await app.press("home", *["down"] * rows.index("silence-is-meant"), "enter")
        assert app.app.screen is app.app.main
        row = app.app.main.selection.tree.selected
        assert row is not None and row.label == "Silence is meant"


async def test_it_begins_at_the_case_under_the_cursor(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, weak=WEAK), size=(40, 10)) as app:
        app.app.main.selection.select(app.app.main.open_suites.suites[0].path, "silence-is-meant")
        await app.press("exclamation_mark")
        await app.until(lambda: "2 findings" in app.screen)
        assert "Silence is meant" in app.screen


async def test_help_and_escape_work_there(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, weak=WEAK), size=(80, 24)) as app:
        await app.press("exclamation_mark", "question_mark")
        assert "Here, in the audit" in app.screen
        await app.press("escape", "escape")
        assert app.app.screen is app.app.main


async def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    hostile = WEAK.replace('name = "Weak"', 'name = "Weak [red]\\u001b[2J"').replace('"there"', '"[bold]\\u202e"')
    async with opened(suites_in(tmp_path, weak=hostile), size=(80, 24)) as app:
        await app.press("exclamation_mark")
        await app.until(lambda: "findings" in app.screen)
        assert "Weak [red]" in app.screen
        assert "\x1b" not in app.screen and "\u202e" not in app.screen
