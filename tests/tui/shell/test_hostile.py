"""Texts of models, tools and files are data: none reaches the terminal as a command or the app as markup."""

from __future__ import annotations

import signal
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.strip import Strip

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, conversation, opened, suites_in
from tests.tui.in_terminal import Terminal
from workbench.show.visible import one_line, visible
from workbench.tui.kit.strips import safe_strip
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.terminal.output_filters import ControlsFilter

HOSTILE = [
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]52;c;aGk=\x07",
    "[/nope] [bold]not bold[/bold] list[int] [@click=app.quit]x[/]",
    "\u202eright to left\u202c \u2066isolated\u2069",
    "\x9b31m C1 \x85 \x90",
    "a\rb\x08c\x00d\x7f",
    "zero\u200bwidth\u200djoiner\ufeffmark \U000e0041tag",
    "漢字 wide 👩‍👩‍👧 ❤️ e\u0301",
    "\ud800 lone surrogate",
    "x" * 1_000_000,
    "line\u2028separator\u2029paragraph",
]

ACTED_ON = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that affect a terminal or a layout."""

UNSAFE = st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\u200d\ufe0f[/]\r\n\t"), max_size=60)


@given(UNSAFE)
def test_no_character_that_is_acted_on_is_left(text: str) -> None:
    left = {char for char in one_line(text) if unicodedata.category(char) in ACTED_ON}
    assert left <= _PRINTED_FORMATS
    assert {char for char in visible(text) if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}


@given(UNSAFE)
def test_what_is_shown_can_be_written_to_a_terminal(text: str) -> None:
    visible(text).encode("utf-8")


@given(st.text(st.characters(exclude_categories=["C", "Z", "M"]), max_size=40))
def test_ordinary_text_stays_what_it_is(text: str) -> None:
    assert visible(text) == text or max(text) >= "\u115f"


@pytest.mark.parametrize(
    "text",
    first_of(HOSTILE, 1),
    ids=range(len(HOSTILE)),
)
async def test_hostile_text_of_models_and_tools_is_only_shown(tmp_path: Path, text: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, [(text[:200], {text[:200]: text, "list": [text]})], text))
        await app.settle()
        await app.press("3", "home", *["down"] * 5, "enter")
        assert not set(app.screen) & set("\x1b\x9b\x07\x00\r\u202e\u200b\u2028")
        assert all(cell_len(line) <= 80 for line in app.screen.split("\n"))


@pytest.mark.parametrize("text", first_of([text for text in HOSTILE if "\ud800" not in text and len(text) < 1_000], 1))
async def test_hostile_names_in_suites_are_only_shown(tmp_path: Path, text: str) -> None:
    escaped = "".join(f"\\U{ord(char):08x}" for char in text)
    suite = SMART_HOME.replace('name = "Movie night"', f'id = "x"\nname = "{escaped}"')
    async with opened(suites_in(tmp_path, smart_home=suite), size=(160, 48)) as app:
        assert not set(app.screen) & set("\x1b\x9b\x07\x00\r\u202e\u200b\u2028")
        await app.press("slash", "x", "escape", "question_mark", "escape", "m", "escape")
        assert app.app.is_running


async def test_a_file_name_that_is_no_text_can_be_shown(tmp_path: Path) -> None:
    suites = suites_in(tmp_path)
    (suites / "bad\udcff\x1b[31m.toml").write_text(SMART_HOME, encoding="utf-8")
    (suites / "worse\udcfe.toml").write_text("format = 1\n=", encoding="utf-8")
    async with opened(suites) as app:
        await app.press("home", "down", "down", "y")
        assert "\x1b" not in app.screen
        app.screen.encode("utf-8")


@pytest.mark.slow
async def test_a_hostile_suite_is_only_shown_and_can_be_typed_in(tmp_path: Path) -> None:
    suites = suites_in(tmp_path)
    lines = [text.encode("utf-8", "surrogatepass") for text in HOSTILE if len(text) < 1_000]
    content = SMART_HOME.encode() + b"\n# " + b"\n# ".join(lines).replace(b"\xed\xa0\x80", b"") + b"\n= \n"
    (suites / "hostile.toml").write_bytes(content)
    async with opened(suites, size=(40, 30)) as app:
        await app.press("home", "down", "2", "o", "end")
        suite = app.app.main.selection.suite
        assert suite is not None
        await app.press("e", "ctrl+end", *["up", "end", "x", "left", "left", "delete"] * 4)
        assert suite.document.text != content.decode()
        assert "\u202eright" in suite.document.text, "what is shown otherwise is kept"
        assert not set(app.screen) & set("\x1b\x9b\x07\x00\r\u202e\u200b\u2028")
        assert all(cell_len(line) <= 40 for line in app.screen.split("\n"))


@pytest.mark.slow
async def test_a_line_of_a_megabyte_and_a_file_that_is_not_utf_8_are_shown(tmp_path: Path) -> None:
    suites = suites_in(tmp_path)
    (suites / "a.toml").write_bytes(SMART_HOME.replace("Start movie night.", "漢" * 1_000_000).encode())
    (suites / "b.toml").write_bytes(SMART_HOME.encode() + b"# \xff\xfe\x1b[31m\n")
    async with opened(suites, size=(80, 24)) as app:
        await app.press("2", "o", "end", "home", "pagedown", "e")
        assert "F4 opens it in your editor" in app.screen
        await app.press("1", "end", "2", "e")
        assert "is not UTF-8" in app.screen
        assert "\x1b" not in app.screen


COMMANDS = "\x1b[31m\x1b]52;c;aGk=\x07\x1b]8;;http://x\x07\x1bP1$r\x1b\\\x9b2J"
MARKED_UP = "[/no] list[int] \u202ex\u2066\u200b\ufeff\U000e0041"
BROKEN_UP = "\r\n\t漢e\u0301👩\u200d👩\u200d👧\x00\u2028"

EVERYWHERE = """format = 1
name = "N{0}"
system = "S{0}"
models = ["m{0}"]
servers = [{{ name = "s{0}", command = ["{0}"] }}]
mocks = [{{ tool = "t{0}", when = {{ "p{0}" = "{0}" }}, error = "{0}" }}]

[[tools]]
name = "t{0}"
description = "{0}"
[tools.parameters.properties."p{0}"]
description = "{0}"
enum = ["e{0}", "b"]

[[cases]]
id = "i{0}"
name = "n{0}"
user = "{0}"
tags = ["{0}", "x"]
ordered = [{{ tool = "t{0}", args = {{ "p{0}" = "{0}", "q{0}" = {{ one_of = ["{0}", 1] }} }} }}]
response = {{ judged = "{0}" }}

[[cases]]
name = "second{0}"
user = "hi"
skip = "{0}"
"""
"""A suite with a hostile text in every place."""


def suite_saying(text: str) -> str:
    return EVERYWHERE.format("".join(f"\\U{ord(char):08x}" for char in text))


def assert_safe(app: Opened) -> None:
    """Nothing on the screen is acted on, and every row is as wide as the screen."""
    for strip in app.app.screen._compositor.render_strips():
        assert not {char for char in strip.text if unicodedata.category(char) in ACTED_ON} - _PRINTED_FORMATS
        assert cell_len(strip.text) == strip.cell_length == app.app.size.width


@pytest.mark.slow
@pytest.mark.parametrize("text", first_of([COMMANDS + MARKED_UP, BROKEN_UP], 1), ids=["commands", "line breaks"])
async def test_every_screen_shows_any_text_and_keeps_it(tmp_path: Path, text: str) -> None:
    folder = suites_in(tmp_path) / text.replace("/", "_").replace("\0", "")
    folder.mkdir()
    file = folder / "some.toml"
    file.write_text(suite_saying(text), encoding="utf-8")
    async with opened(folder.parent, size=(80, 24)) as app:
        assert_safe(app)
        for keys in (
            *(["2"], ["e", "x", "enter", "escape"], ["down"] * 4, ["e", "escape"]),  # the form, and its field
            ["o", "e", "x", "escape"],  # the TOML
            ["1", "slash", "n", "escape"],
            *([key, "escape"] for key in ("f2", "m", "asterisk", "r")),
            ["t", "down", "down", "c", "escape", "escape"],  # the tools, and a call by hand
            ["delete", "enter", "ctrl+z"],
        ):
            for key in keys:
                await app.press(key)
                assert_safe(app)
        suite = app.app.main.selection.suite
        assert suite is not None
        assert len(suite.cases) == 2
        assert suite.dirty
        file.write_text(suite_saying(text + "!"), encoding="utf-8")
        await app.press("ctrl+s")
        await app.until(lambda: "is not TOML" in " ".join(app.screen.splitlines()[-3:]))
        assert_safe(app)  # why it was not saved
        await app.press("ctrl+z")
        await app.until(lambda: not isinstance(app.app.screen, MainScreen))
        assert_safe(app)  # the difference to what is on the disk
        await app.press("escape", "q")
        await app.until(lambda: not isinstance(app.app.screen, MainScreen))
        assert_safe(app)
        assert suite_saying(text).rpartition("[[cases]]")[2] in suite.document.text
    async with opened(folder.parent, size=(80, 24)) as app:
        await app.until(lambda: not isinstance(app.app.screen, MainScreen))
        assert_safe(app)  # what was not saved


@pytest.mark.slow
def test_no_command_in_a_text_reaches_the_terminal(tmp_path: Path) -> None:
    (tmp_path / COMMANDS.replace("/", "_")).mkdir()
    (tmp_path / COMMANDS.replace("/", "_") / "some.toml").write_text(suite_saying(COMMANDS), encoding="utf-8")
    with Terminal([str(tmp_path)], tmp_path / "state", columns=80, rows=24) as terminal:
        terminal.wait_for("1 Suites")
        typing = ("2", "e", "x", "\x1b", "o", "e", "x", "\x1b", "1", "\x1bOQ", "\x1b")
        for key in (*typing, *(key for screen in "mthvuB?\x10" for key in (screen, "\x1b"))):
            terminal.send(key)
            terminal.quiet(0.15)
        terminal.signal(signal.SIGTERM)
        terminal.end()
    written = bytes(terminal.output).decode("utf-8")
    assert "\x9b" not in written
    assert not [
        command for command in ("\x1b[31m", "\x1b]52", "\x1b]8;", "\x1bP1$r", "\x1b[2J\x1b]") if command in written
    ]


@given(UNSAFE)
def test_what_textual_draws_is_made_safe_and_keeps_its_width(text: str) -> None:
    strip = Strip([Segment(text)])
    for made in (safe_strip(strip), strip.apply_filter(ControlsFilter(), Color(0, 0, 0))):
        assert not {char for char in made.text if unicodedata.category(char) in ACTED_ON} - _PRINTED_FORMATS
        assert cell_len(made.text) == strip.cell_length


@pytest.mark.slow
async def test_a_text_that_is_too_long_to_be_typed_in_is_left_to_the_users_editor(tmp_path: Path) -> None:
    text = "# " + "s\n" * 100_000
    suite = SMART_HOME.replace('"Start movie night."', f"'''{text}'''")
    async with opened(suites_in(tmp_path, long=suite), size=(80, 24)) as app:
        await app.press("2", "home", "down", "down", "e")
        assert "too many for this field: shorten it" in " ".join(app.screen.split())
        assert app.app.main.case_pane.typing is None


_PRINTED_FORMATS = {
    chr(code)
    for first, last in (
        (0x600, 0x605),
        (0x6DD, 0x6DD),
        (0x70F, 0x70F),
        (0x890, 0x891),
        (0x8E2, 0x8E2),
        (0x110BD, 0x110BD),
        (0x110CD, 0x110CD),
        (0x13430, 0x1343F),
        (0x1BCA0, 0x1BCA3),
        (0x1D173, 0x1D17A),
    )
    for code in range(first, last + 1)
}
"""Format characters of single scripts that have a picture of their own, or hold marks of that script together."""
