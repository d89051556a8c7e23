"""The form with keys and mouse, in a small app."""

from __future__ import annotations

import pytest

from tests.sampled_rows import first_of, first_rows
from tests.tui.form_app import Typist, form_of
from workbench.authoring.document import HEAD
from workbench.tui.kit.suggestions import CompletionList
from workbench.tui.kit.text_field import TextField

HOME = """
format = 1
name = "Home"

[[tools]]
name = "set_lights"
description = "Sets the lights of a room."
[tools.parameters]
type = "object"
required = ["room"]
[tools.parameters.properties.room]
type = "string"
enum = ["living room", "bedroom"]
[tools.parameters.properties.brightness]
type = "integer"
maximum = 100

[[tools]]
name = "lock_door"

[[cases]]
id = "movie-night"
name = "Movie night"
user = "Start it."

# dim
[[cases.ordered]]
tool = "set_lights"
args = { room = "bedroom", brightness = 5 } # low

[[cases]]
name = "New"
user = ""
"""


async def go(typist: Typist, *place: str | int) -> None:
    typist.app.go_to(place)
    await typist.pilot.pause()


async def test_a_case_is_written_from_nothing_by_keys_alone() -> None:
    async with form_of(HOME, 1) as typist:
        await typist.press("enter")  # the cursor begins at the request, which is missing
        await typist.type("Dim the bedroom.")
        await typist.press("enter", "plus")  # which goes on to what is expected
        await typist.type("lights")
        await typist.press("enter", "down", "enter")  # the tool, then the value of its first argument
        await typist.press("down", "enter", "plus", "enter")  # bedroom, then another argument: the only one left
        await typist.type("20")
        await typist.press("enter", "left", "enter")
        await typist.type("rang")
        await typist.press("enter", "end", "backspace", "5", "enter")
        screen, table = typist.screen, typist.app.table
        assert table["user"] == "Dim the bedroom."
        assert table["ordered"] == [
            {"tool": "set_lights", "args": {"room": "bedroom", "brightness": {"range": [20, 25]}}}
        ]
        assert "brightness  range  20..25" in screen


async def test_everything_typed_is_in_the_document_at_once_and_undone_as_one() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "name")
        await typist.press("enter", "end")
        await typist.type(" one")
        assert typist.says("name") == "Movie night one"
        typist.app.suite.undo()
        typist.app.show()
        assert typist.says("name") == "Movie night"
        await typist.type("s")
        assert typist.says("name") == "Movie nights"
        assert typist.app.form.page.current is not None and typist.app.form.page.current.place == ("name",)


async def test_what_is_next_to_the_edited_value_stays_as_it_was_written() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("right", "right", "enter", "end", "0", "enter")
        text = typist.app.suite.document.text
        assert (
            '# dim\n[[cases.ordered]]\ntool = "set_lights"\nargs = { room = "bedroom", brightness = 50 } # low' in text
        )


async def test_input_that_says_nothing_stays_in_the_field_and_out_of_the_document() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "repeats")
        await typist.press("enter", "x")
        assert "write a number from 1 to 1000" in typist.screen
        assert "repeats" not in typist.app.table
        await typist.press("enter")
        assert typist.app.form.typing and typist.app.refused
        await typist.press("backspace", "2", "enter")
        assert typist.says("repeats") == 2
        assert not typist.app.form.typing


@pytest.mark.parametrize(
    ("place", "typed"),
    first_rows(
        [
            (["repeats"], "x"),
            (["repeats"], "9"),
            (["name"], "Other"),
            (["user"], "first\nsecond"),
            (["ordered", 0], "lock"),
            (["ordered", 0, "args", "brightness"], "dim"),
        ],
        3,
    ),
)
async def test_escape_leaves_a_value_as_it_was_whatever_was_typed(place: list[str | int], typed: str) -> None:
    async with form_of(HOME) as typist:
        before = typist.app.suite.document.text
        await go(typist, *place)
        for _ in range(2):
            await typist.press("enter", *("ctrl+j" if key == "\n" else key for key in typed))
            while typist.app.form.typing:
                await typist.press("escape")
            assert typist.app.suite.document.text == before
            assert not typist.app.form.invalid_texts
        if typed != "x":
            typist.app.suite.redo()
            assert typist.app.suite.document.text != before


async def test_a_value_that_the_schema_refuses_is_marked_as_it_is_typed() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("right", "right", "enter", "end", "0", "0")
        assert "500" in typist.screen and "100" in typist.screen.split("500")[1].split("\n")[1]


async def test_tab_goes_through_cells_and_rows() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "room")
        await typist.press("enter", "tab", "tab", "tab", "tab")
        page = typist.app.form.page
        assert page.current is not None and page.current.place[-1] == "brightness" and page.cell == 0
        await typist.press("shift+tab")
        assert page.current.place[-1] == "room" and page.cell == 3


async def test_completions_are_taken_with_the_arrows_and_closed_with_escape() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "room")
        await typist.press("right", "right", "enter")
        completions = typist.app.form.query_one(CompletionList)
        assert completions.is_open and "living room" in typist.screen
        await typist.press("up", "enter")
        assert typist.app.table["ordered"][0]["args"]["room"] == "living room"
        await go(typist, "ordered", 0)
        await typist.press("enter", "l", "escape")
        assert not completions.is_open and typist.app.form.typing
        await typist.press("escape")
        assert not typist.app.form.typing


async def test_a_completion_can_be_clicked() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0)
        await typist.press("enter")
        assert await typist.pilot.click(CompletionList, offset=(3, 1))
        assert typist.app.table["ordered"][0]["tool"] == "lock_door"


async def test_a_prompt_takes_several_lines() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "user")
        await typist.press("enter", "alt+enter")
        await typist.type("Now")
        assert typist.says("user") == "Start it.\nNow"
        await typist.press("enter")
        await typist.type("ok")
        await typist.press("ctrl+enter")
        assert typist.says("user") == "Start it.\nNow\nok"
        await go(typist, "user")
        await typist.press("enter")
        assert typist.app.form.query_one(TextField).has_focus


async def test_what_is_typed_over_a_value_replaces_it_unless_the_cursor_is_moved_first() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "name")
        await typist.press("enter", "A", "b", "enter", "up", "enter", "end", "c", "enter")
        assert typist.says("name") == "Abc"
        await typist.press("up", "enter", "enter")
        assert typist.says("name") == "Abc"


async def test_enter_ends_a_long_text_of_one_line_and_breaks_one_of_several() -> None:
    long = "Start it, " * 12
    async with form_of(HOME.replace("Start it.", long)) as typist:
        await go(typist, "user")
        await typist.press("enter")
        assert typist.app.form.is_multiline
        await typist.press("!", "enter")
        assert not typist.app.form.typing and typist.says("user") == f"{long}!"
        await go(typist, "user")
        await typist.press("enter", "ctrl+j", "a", "enter", "b", "ctrl+enter")
        assert not typist.app.form.typing and typist.says("user") == f"{long}!\na\nb"


async def test_after_a_check_its_value_is_typed_in_if_it_has_one() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("right", "enter", *"near", "enter", "8", "enter")
        assert typist.app.table["ordered"][0]["args"]["brightness"] == {"near": 8, "tolerance": 1}
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("right", "enter", *"present", "enter")
        assert not typist.app.form.typing


async def test_after_the_name_of_an_argument_its_value_is_typed_in() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("enter", *"dim", "enter", "8", "enter")
        assert typist.app.table["ordered"][0]["args"] == {"room": "bedroom", "dim": 8}


async def test_what_is_empty_and_needed_is_asked_for_one_after_the_other() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "messages")
        await typist.press("plus", *"tool", "enter", *"c1", "enter", *"21", "enter")
        assert typist.says("messages") == [{"role": "tool", "call": "c1", "content": "21"}]


async def test_a_chain_begins_at_the_message_of_its_first_step() -> None:
    chain = HOME.replace('name = "New"\nuser = ""', 'name = "New"\nsteps = [{ user = "", tool = "lock_door" }]')
    async with form_of(chain, 1) as typist:
        assert "what is asked?" in typist.screen
        await typist.press("enter", *"Lock", "enter")
        assert typist.says("steps")[0]["user"] == "Lock"


async def test_enter_stays_in_the_list_so_that_more_can_be_added_to_it() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("right", "right", "enter", "7", "enter")
        current = typist.app.form.page.current
        assert current is not None and current.place == ("ordered", 0, "args", "brightness")


async def test_another_argument_is_asked_for_below_all_options_of_the_one_before() -> None:
    near = HOME.replace("brightness = 5", "brightness = { near = 5, tolerance = 2 }")
    async with form_of(near) as typist:
        await go(typist, "ordered", 0, "args", "brightness", "tolerance")
        await typist.press("plus")
        lines = typist.screen.split("\n")
        asked = next(at for at, line in enumerate(lines) if "which argument?" in line)
        assert "tolerance" in lines[asked - 1] and "room" in lines[asked - 3]
        await typist.press("escape", "escape")
        current = typist.app.form.page.current
        assert current is not None and current.place[-1] == "tolerance"


async def test_when_of_a_mock_asks_for_an_argument() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "mocks")
        await typist.press("plus", *"set_lights", "enter")
        await go(typist, "mocks", 0, "when")
        assert "any" in typist.screen
        await typist.press("enter", *"room", "enter", *"bedroom", "enter")
        assert typist.says("mocks")[0]["when"] == {"room": "bedroom"}


async def test_keys_that_come_in_one_burst_are_for_the_field_that_they_open() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "repeats")
        await typist.press("enter", "3", "tab", "n", "o", "n", "e", "enter")
        assert (typist.says("repeats"), typist.says("skip")) == (3, "none")


async def test_yes_and_no_are_switched_by_enter() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "expect_no_calls")
        await typist.press("enter")
        assert typist.says("expect_no_calls") is True
        await typist.press("enter")
        assert typist.says("expect_no_calls") is False


async def test_calls_are_moved_grouped_copied_and_taken_away() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0)
        await typist.press("d", "K", "left_parenthesis")
        assert [list(item) for item in typist.app.table["ordered"]] == [["any_order"]]
        await typist.press("right_parenthesis")
        await go(typist, "ordered", 1)
        await typist.press("delete")
        assert len(typist.app.table["ordered"]) == 1
        await typist.press("delete")
        assert "ordered" not in typist.app.table


async def test_what_cannot_be_done_says_why() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "name")
        await typist.press("delete", "J")
        assert [
            why[: len(start)].lower()
            for why, start in zip(typist.app.refused, ["a case needs", "only elements"], strict=True)
        ] == ["a case needs", "only elements"]
        assert set(typist.app.form.refusals()) >= {"form.remove", "form.down"}


async def test_a_field_stays_open_while_its_cell_is_there_and_says_what_the_cell_says() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "tags")
        await typist.press("enter", "a")
        typist.app.show()
        assert typist.app.form.typing
        document = typist.app.suite.document
        typist.app.suite.change(document.with_case(0, {**document.table(0), "tags": ["b"]}), "from outside")
        typist.app.show()
        await typist.pilot.pause()
        assert typist.says("tags") == ["b"]
        await typist.type("c")
        assert typist.says("tags") == ["bc"]
        typist.app.index = 1
        typist.app.show()
        assert not typist.app.form.typing


async def test_a_click_chooses_a_cell_and_another_one_edits_it() -> None:
    async with form_of(HOME) as typist:
        line = next(at for at, text in enumerate(typist.screen.split("\n")) if "brightness" in text)
        column = typist.screen.split("\n")[line].index("5")
        await typist.pilot.click("FormView", offset=(column, line))
        page = typist.app.form.page
        assert page.current is not None and page.current.place[-1] == "brightness" and page.cell == 2
        assert not typist.app.form.typing
        await typist.pilot.click("FormView", offset=(column, line))
        assert typist.app.form.typing


async def test_the_last_row_searches_for_what_can_be_added() -> None:
    async with form_of(HOME) as typist:
        before = typist.screen
        await typist.press("end", "enter", *"repeat", "enter")
        assert "a whole number from 1 to 1000; default" in typist.screen
        await typist.press("escape")
        assert typist.screen == before, "what stayed empty is folded again"
        await typist.press("enter", *"repeat", "enter", "3", "enter", "end", "enter", *"lock", "enter")
        assert typist.says("repeats") == 3
        assert [call["tool"] for call in typist.says("ordered")] == ["set_lights", "lock_door"]
        await go(typist, "ordered", 0)
        await typist.press("ampersand", *"only", "enter")
        assert typist.says("ordered")[0]["only_args"] is True


async def test_a_removal_says_at_its_place_how_it_is_undone_until_the_next_change() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "room")
        await typist.press("delete")
        lines = typist.screen.split("\n")
        assert lines[4].strip() == "room of set_lights removed: Ctrl+Z undoes"
        assert "brightness" in lines[5]
        await typist.press("down", "up")
        assert "removed" in typist.screen
        typist.app.suite.undo()
        typist.app.show()
        await typist.pilot.pause()
        assert "removed" not in typist.screen and "bedroom" in typist.screen


async def test_invalid_text_that_is_left_by_the_mouse_is_marked_in_its_row_and_dropped_with_it() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("left", "left", "right", "enter", *"near", "enter", "x")
        key, typist.app.index = typist.app.index, 1
        typist.app.form.case = "other"
        typist.app.show()
        assert not typist.app.form.typing
        typist.app.index, typist.app.form.case = key, None
        typist.app.show()
        await typist.pilot.pause()
        assert "not applied: write a number" in typist.screen
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("delete")
        assert "not applied" not in typist.screen and "brightness" in typist.screen


async def test_every_key_is_shown_when_it_is_wanted() -> None:
    async with form_of(HOME, size=(60, 56)) as typist:
        assert "repeats" not in typist.screen
        await typist.press("full_stop")
        assert "repeats" in typist.screen
        await typist.press("full_stop")
        assert "repeats" not in typist.screen


async def test_the_settings_of_a_suite_are_edited_the_same_way() -> None:
    async with form_of(HOME, HEAD) as typist:
        await go(typist, "description")
        await typist.press("enter")
        await typist.type("Lights")
        await typist.press("tab")
        if typist.app.form.typing:
            await typist.press("escape")
        await go(typist, "tools", 1)
        await typist.press("plus")
        await typist.type("open_door")
        await typist.press("enter")
        assert typist.says("description") == "Lights"
        assert typist.app.suite.file.suite is not None
        assert [tool.name for tool in typist.app.suite.file.suite.tools] == ["set_lights", "lock_door", "open_door"]


async def test_a_key_that_is_typed_repaints_only_what_it_changed() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "name")
        await typist.press("enter", "a")
        before = typist.app.form.rows_drawn
        await typist.press("b")
        assert typist.app.form.rows_drawn - before <= 2


@pytest.mark.parametrize("size", first_of([(40, 10), (20, 6)], 1))
async def test_the_field_stands_inside_the_pane_whatever_its_size(size: tuple[int, int]) -> None:
    async with form_of(HOME, size=size) as typist:
        kinds: set[str] = set()
        for row in typist.app.form.page.rows:
            if row.cells and row.cells[0].kind not in kinds:
                kinds.add(row.cells[0].kind)
                await go(typist, *row.place)
                typist.app.form._open()
                await typist.pilot.pause()
                field = typist.app.form.field.region
                assert typist.app.form.region.contains_region(field), (row.place, field)
                await typist.press("escape", "escape")


async def test_the_field_follows_when_the_pane_gets_another_size() -> None:
    async with form_of(HOME) as typist:
        await go(typist, "user")
        await typist.press("enter")
        await typist.pilot.resize_terminal(40, 8)
        await typist.pilot.pause()
        assert typist.app.form.region.contains_region(typist.app.form.field.region)
        await typist.press("end")
        await typist.type("!")
        assert typist.says("user") == "Start it.!"


@pytest.mark.parametrize("place", ["name", "user"])
async def test_what_a_terminal_would_act_on_is_shown_safely_while_it_is_edited(place: str) -> None:
    hostile = HOME.replace("Movie night", "x\\u001b]0;t\\u0007[/b]\\u202ey").replace(
        "Start it.", "a\\u001b[31m\\nb\\u202e"
    )
    async with form_of(hostile) as typist:
        await go(typist, place)
        await typist.press("enter", "end", "!")
        assert typist.app.form.typing
        assert not {"\x1b", "\x07", "\u202e"} & set(typist.screen)
        assert str(typist.says(place)).endswith("!")


async def test_a_value_typed_where_any_value_stands_makes_the_check_an_equality() -> None:
    async with form_of(HOME.replace("brightness = 5", "brightness = { present = true }"), size=(100, 24)) as typist:
        await go(typist, "ordered", 0, "args", "brightness")
        await typist.press("up", "down")
        assert typist.app.form.page.current_cell is not None
        assert typist.app.form.page.current_cell.shown == "any value"
        await typist.press("enter")
        assert "any value; type one to require it" in typist.screen
        await typist.press("7", "enter")
        assert typist.app.table["ordered"][0]["args"]["brightness"] == 7
        assert "brightness  is  7" in typist.screen
