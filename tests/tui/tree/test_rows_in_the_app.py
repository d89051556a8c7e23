"""A case with rows in the app: one case to edit, and a run of each row."""

from __future__ import annotations

from pathlib import Path

from tests.tui.apps import Opened, conversation, opened, suites_in
from workbench.authoring.case_list import line_of_row
from workbench.tui.case.form.view import FormView
from workbench.tui.tree.view import SuiteTree

REFUNDS = """
format = 1
name = "Shop"

[[cases]]
id = "refund"
name = "Refund {order}"
user = "Refund {order}."
each = "refunds.csv"
ordered = [{ tool = "refund", args = { order = "{order}", amount = "{amount}" } }]

[[cases]]
name = "Hello"
user = "Hello."
expect_no_calls = true

[[tools]]
name = "refund"
""".lstrip()


def tree(app: Opened) -> list[str]:
    shown = app.app.main.query_one("#suites", SuiteTree)
    lines = ("".join(span.text for span in shown.line_at(index)) for index in range(shown.line_count()))
    return [" ".join(line.split()) for line in lines]


async def test_one_case_unfolds_its_rows_and_is_edited_once(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, shop=REFUNDS)
    suites.joinpath("refunds.csv").write_text("id,order,amount:json\nsmall,A-17,5\nbig,B-2,700\n")
    async with opened(suites, size=(160, 48)) as app:
        await app.press("1", "home", "down", "down")
        assert tree(app)[2:] == ["· ▾ Refund {order}", "· Refund A-17", "· Refund B-2", "· Hello"]
        assert "2 cases, not run yet" in app.screen
        small, big = await app.run("r")
        assert (small.case.id, big.case.id) == ("refund/small", "refund/big")
        app.session.finish(small, conversation(small, [("refund", {"order": "A-17", "amount": 5})], "Done."))
        app.session.finish(big, conversation(big, [("refund", {"order": "B-2", "amount": 7})], "Done."))
        app.session.end_batch()
        await app.settle()
        assert tree(app)[2:] == ["✗ ▾ Refund {order} 1/2", "✓ Refund A-17 1.00", "✗ Refund B-2 ≠ 0.75", "· Hello"]
        await app.press("down", "down")
        form = app.app.main.query_one(FormView)
        assert "Refund B-2." in app.screen and "expected 700" in app.screen
        await app.press("a")
        assert "This is a row of the case Refund {order} above" in app.screen
        assert "F4 opens refunds.csv" in app.screen
        row = app.app.selection.row
        assert row is not None and row.open is not None and row.case is not None
        assert line_of_row(row.open, row.case) == 3
        await app.press("1", "up", "up", "2")
        assert "Refund {order}." in app.screen
        form.go_to(("name",))
        await app.press("enter", "end", "!", "enter")
        await app.until(lambda: tree(app)[4] == "✗ Refund B-2! ●≠ 0.75")
        assert tree(app)[2] == "✗ ▾ Refund {order}! ● 1/2"
        await app.press("ctrl+s")
        await app.until(lambda: 'name = "Refund {order}!"' in suites.joinpath("shop.toml").read_text())
        await app.press("1", "left")
        assert tree(app)[2:] == ["✗ ▸ Refund {order}! 1/2", "· Hello"]
        await app.press("slash", *"status:failed", "enter")
        assert tree(app)[2:] == ["✗ ▸ Refund {order}! 1/2"]
        await app.press("escape")
        suites.joinpath("refunds.csv").write_text("id,order,amount:json\nsmall,A-17,5\nbig,B-2,7\nlast,C-3,1\n")
        app.app.services.watch.check_now()
        await app.press("right")
        await app.until(lambda: "· Refund C-3!" in tree(app))
        assert "the rows of shop.toml changed on disk" in app.screen.lower()
