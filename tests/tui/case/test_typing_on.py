"""Typed text goes into its field, whatever changes around it, and text that cannot be used is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.storage.test_saving import edit
from workbench.tui.case.form.view import FormView

SCHEMA = SMART_HOME.replace(
    'description = "Sets the lights of a room."\n',
    'description = "Sets the lights of a room."\nparameters = { type = "object", properties = { room = {} } }\n',
)


def form_of(app: Opened) -> FormView:
    return app.app.main.query_one(FormView)


async def begin(app: Opened, *place: str | int) -> None:
    """Open the field of a place in the form."""
    await app.press("2")
    if not any(row.place == place for row in form_of(app).page.rows):
        await app.press("full_stop")
    form_of(app).go_to(place)
    await app.press("e")
    assert app.app.main.case_pane.typing is not None, app.screen


async def begin_schema(app: Opened) -> FormView:
    """Type half a list into the parameters of a tool."""
    main = app.app.main
    assert main.selection.suite is not None
    main.selection.select(main.selection.suite.path)
    form = form_of(app)
    await app.press("2")
    place = next(row.place for row in form.page.rows for cell in row.cells if cell.kind == "json")
    await begin(app, *place)
    await app.press("backspace", *', "required": ["half')
    return form


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "place"),
    [("evening", ("tags",)), ("status:never", ("id",)), ("movie", ("name",))],
    ids=lambda of: str(of),
)
async def test_a_case_that_the_filter_no_longer_finds_is_typed_on(
    tmp_path: Path, typed: str, place: tuple[str, ...]
) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        main = app.app.main
        await app.press("slash", *typed, "enter")
        key = main.selection.suite.cases[0].key if main.selection.suite is not None else ""
        main.selection.select(tmp_path / "suites" / "home.toml", key)
        await begin(app, *place)
        await app.press("ctrl+u", *"xyzzy")
        assert main.case_pane.typing == "a line"
        assert main.selection.suite is not None
        assert str(main.selection.suite.document.table(0)[place[0]]).strip("[']") == "xyzzy"


async def test_a_problem_is_mended_in_the_form_from_its_row_of_the_tree(tmp_path: Path) -> None:
    bad = SMART_HOME.replace("format = 1", "format = 1\nrepeats = 0")
    async with opened(suites_in(tmp_path, home=bad)) as app:
        main = app.app.main
        at = next(at for at, row in enumerate(main.selection.tree.rows) if row.key.kind == "problem")
        main.selection.tree.move_to(at)
        main.show_selected()
        await begin(app, "repeats")
        await app.press("backspace", *"15")
        assert main.case_pane.typing == "a line"
        assert main.selection.suite is not None and "repeats = 15" in main.selection.suite.document.text


@pytest.mark.slow
async def test_undo_takes_back_what_is_typed_as_toml_when_the_filter_no_longer_finds_it(tmp_path: Path) -> None:
    other = SMART_HOME.replace("Smart home", "Another").replace("evening", "evensong")
    suites = suites_in(tmp_path, home=SMART_HOME, xother=other)
    async with opened(suites) as app:
        main = app.app.main
        main.selection.select(suites / "xother.toml")
        elsewhere = edit(app, "Lights off", "Lamps off")
        main.selection.select(suites / "home.toml")
        await app.press("1", "slash", *"even", "enter", "2", "o", "e")
        editor = main.case_pane.toml.editor
        line = next(at for at, text in enumerate(editor.typed.lines) if "tags" in text)
        editor.go_to(line, editor.typed.lines[line].index('"]'))
        await app.press(*["backspace"] * 7)
        assert main.case_pane.typing == "toml"
        await app.press("ctrl+z")
        assert "Lamps off" in elsewhere.document.text
        assert not main.open_suites.suites[0].dirty


async def test_each_key_is_in_the_journal_before_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), errs=True) as app:
        main = app.app.main

        asked: list[str] = []

        def no_screen() -> None:
            asked.extend(path.read_text() for path in (tmp_path / "state" / "drafts").iterdir())
            raise ZeroDivisionError

        monkeypatch.setattr(main, "show_selected", no_screen)
        edit(app)
        monkeypatch.undo()
        assert '"put":"Film"' in "".join(asked)
        assert '"put":"Film"' in "".join(path.read_text() for path in (tmp_path / "state" / "drafts").iterdir())


# External changes during typing


async def test_undo_while_typing_leaves_the_field_open_with_the_text_before(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await begin(app, "name")
        await app.press(*"abc", "ctrl+z", "d")
        suite = app.app.main.open_suites.suites[0]
        assert [case.name for case in suite.cases] == ["Movie nightd", "Lights off", "Nothing to do"]
        app.app.main.announce("The suites were read again")
        await app.settle()
        *_, notice, keys = app.screen.splitlines()
        assert "The suites were read again" in notice
        assert "Enter keep" in keys and "Esc leave as it was" in keys and "Ctrl+Z undo" in keys
        assert app.app.main.case_pane.typing == "a line"
        await app.press("X")
        assert suite.cases[0].name == "Movie nightdX"


@pytest.mark.parametrize("view", first_of(["form", "toml"], 1))
async def test_a_file_that_changes_on_the_disk_leaves_open_what_is_typed_in(tmp_path: Path, view: str) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites) as app:
        main = app.app.main
        await app.press("2")
        if view == "toml":
            await app.press("o", "down")
        await app.press("e")
        above = '[[cases]]\nname = "New first"\nuser = "x"\n\n# A film'
        (suites / "home.toml").write_text(SMART_HOME.replace("# A film", above))
        app.app.services.reader.read_soon()
        await app.settle()
        assert len(main.open_suites.suites[0].cases) == 4
        await app.press(*"ZZ")
        assert main.case_pane.typing == ("toml" if view == "toml" else "a line")
        assert main.open_suites.suites[0].cases[0].name == "New first"
        assert "ZZ" in main.open_suites.suites[0].document.block(1)


async def test_a_case_that_is_gone_from_the_disk_is_not_typed_on_in_another_one(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites) as app:
        await begin(app, "name")
        text = SMART_HOME[: SMART_HOME.index("# A film")] + SMART_HOME[SMART_HOME.index('[[cases]]\nname = "Lights') :]
        (suites / "home.toml").write_text(text)
        app.app.services.reader.read_soon()
        await app.settle()
        assert app.app.main.open_suites.suites[0].cases[0].name == "Lights off"
        assert app.app.main.case_pane.typing is None


# Texts that a cell cannot hold


async def leave_for_another_row(app: Opened) -> None:
    """Go to a case and back. Typed text stays."""
    main = app.app.main
    suite = main.open_suites.suites[0]
    main.selection.select(suite.path, suite.cases[0].key)
    await app.settle()
    assert main.case_pane.typing is None and "invalid" in app.screen
    main.selection.select(suite.path)


@pytest.mark.slow
async def test_a_text_that_a_cell_refuses_is_there_again_with_its_reason(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SCHEMA), size=(160, 48)) as app:
        main = app.app.main
        form = await begin_schema(app)
        assert form.page.opened is not None
        suite, place, why = main.open_suites.suites[0], form.page.rows[form.page.row].place, form.page.opened.refused
        await leave_for_another_row(app)
        await begin(app, *place)
        assert form.field.text.endswith('"required": ["half')  # type: ignore[union-attr]
        assert form.page.opened is not None and form.page.opened.refused == why
        await app.press(*'"]}', "enter")
        assert not suite.invalid_texts
        assert "half" in suite.document.text


@pytest.mark.slow
async def test_a_text_that_a_cell_refuses_follows_its_cell_and_goes_with_it(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SCHEMA)
    async with opened(suites, size=(160, 48)) as app:
        main = app.app.main
        form, suite = await begin_schema(app), main.open_suites.suites[0]
        place = form.page.rows[form.page.row].place
        assert place == ("tools", 0, "parameters")
        other = '[[tools]]\nname = "first"\ndescription = "Another."\nparameters = { type = "object" }\n\n'
        (suites / "home.toml").write_text(SCHEMA.replace("[[tools]]", other + "[[tools]]", 1))
        app.app.services.reader.read_soon()
        await app.until(lambda: "first" in suite.document.text)
        assert form.typing and form.page.rows[form.page.row].place == ("tools", 1, "parameters")
        await leave_for_another_row(app)
        await begin(app, *place)
        assert "half" not in str(form.field.value if not form.is_multiline else form.field.text)  # type: ignore[union-attr]
        await app.press("escape")
        await begin(app, "tools", 1, "parameters")
        assert form.field.text.endswith('"required": ["half')  # type: ignore[union-attr]
        await leave_for_another_row(app)
        await app.settle()
        form.go_to(("tools", 1))
        await app.press("delete")
        assert "set_lights" not in suite.document.text[: suite.document.text.index("[[cases]]")]
        await app.press("ctrl+s")
        await app.until(lambda: not suite.dirty)
        assert "invalid text" not in app.screen
        await begin(app, "tools", 0, "parameters")
        await app.press(*"[")
        (suites / "home.toml").write_text(SCHEMA[: SCHEMA.index("[[tools]]")] + SCHEMA[SCHEMA.index("[[cases]]") :])
        app.app.services.reader.read_soon()
        await app.until(lambda: "its cell no longer exists" in app.screen)
        assert not form.typing and not suite.invalid_texts
        await app.pilot.press("ctrl+q")
        await app.until(lambda: app.app._exit)


@pytest.mark.slow
async def test_quitting_asks_about_a_text_that_a_cell_refuses(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SCHEMA), size=(160, 48)) as app:
        await begin_schema(app)
        await app.press("ctrl+q")
        assert app.app.is_running and app.app._exit is False
        assert "parameters" in app.screen and "Ctrl+Q again" in app.screen
        await app.press("x", "ctrl+q")
        assert app.app._exit is False  # what was typed since is not what was asked about
        await app.pilot.press("ctrl+q")
        await app.until(lambda: app.app._exit)


@pytest.mark.slow
@pytest.mark.parametrize("is_dirty", [False, True])
async def test_saving_says_which_invalid_text_is_not_saved(tmp_path: Path, is_dirty: bool) -> None:
    suites = suites_in(tmp_path, home=SCHEMA)
    async with opened(suites, size=(160, 48)) as app:
        suite = edit(app) if is_dirty else app.app.main.open_suites.suites[0]
        form = await begin_schema(app)
        await app.pilot.press("ctrl+s")
        await app.until(lambda: not suite.dirty and "the invalid text in `parameters`. " in app.screen)
        assert ("Saved without" if is_dirty else "Nothing to save") in app.screen
        assert ("Film night" in (suites / "home.toml").read_text()) == is_dirty
        assert form.typing
