"""The output stage draws exactly the same as Textual, in fewer bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyte.screens import Char
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual._context import visible_screen_stack
from textual.geometry import Region
from textual.strip import Strip

from tests.example_counts import examples
from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Opened, conversation, opened, suites_in
from tests.tui.frames import every_frame
from workbench.config.folders import bundled
from workbench.tui.shell.workbench import Workbench
from workbench.tui.terminal.cells import cell_style, cells_of
from workbench.tui.terminal.output_stage import EraseCapabilities, Frame, OutputStage, Piece, Update, erasing

WIDTH, HEIGHT = 34, 3
LEFT = 12
"""The right edge of the left pane of a random screen."""

CONSOLE = Console(color_system="truecolor", force_terminal=True)
FULL, SIMPLE = EraseCapabilities(keeps_colour=True, within_row=True), EraseCapabilities()
SEEN_ON_BLANKS = ("bg", "underscore", "strikethrough", "reverse", "blink")


class Shown(pyte.Screen):
    """A terminal whose erased cells have the current background, or the default one."""

    def __init__(self, width: int, height: int, *, keeps_colour: bool) -> None:
        self._keeps_colour = keeps_colour
        super().__init__(width, height)
        self.stream = pyte.Stream(self)
        self.stream.feed("\x1b[?7l")

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        self._erased(super().erase_in_line, how)

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        for y in range(self.lines):  # pyte itself erases only the cells that were written
            self.cursor_position(y + 1, 1)
            self.erase_in_line(2)
        self.cursor_position()

    def erase_characters(self, count: int | None = None) -> None:
        self._erased(super().erase_characters, count)

    def _erased(self, erase: Any, how: int | None) -> None:
        attributes = self.cursor.attrs
        self.cursor.attrs = self.default_char._replace(bg=attributes.bg if self._keeps_colour else "default")
        erase(how)
        self.cursor.attrs = attributes

    @property
    def seen(self) -> list[list[tuple[object, ...]]]:
        """Return the visible content of each cell."""
        return [[_seen(self.buffer[y][x]) for x in range(self.columns)] for y in range(self.lines)]


def _seen(cell: Char) -> tuple[object, ...]:
    if cell.data == " " and not cell.reverse:
        return tuple(getattr(cell, name) for name in SEEN_ON_BLANKS)
    return tuple(cell)


class Both:
    """One terminal that gets Textual's own output, and one that gets the output stage's."""

    def __init__(self, width: int, height: int, erases: EraseCapabilities) -> None:
        self.size = (width, height)
        self.textual = Shown(width, height, keeps_colour=erases.keeps_colour)
        self.ours = Shown(width, height, keeps_colour=erases.keeps_colour)
        self.stage = OutputStage(erases)
        self.bytes = [0, 0]

    def update(self, update: ChopsUpdate | LayoutUpdate) -> None:
        """Show an update of Textual's compositor on both, and compare them."""
        self.show(Update(list(_pieces(update))), CONSOLE)
        self.compare(update, CONSOLE)

    def show(self, update: Update, console: Console) -> None:
        """Show an update through the output stage."""
        written = Frame(self.stage, update, *self.size).render_segments(console)
        self.ours.stream.feed(written)
        self.bytes[1] += len(written.encode())
        attributes: Char = self.ours.cursor.attrs
        assert attributes == Char(" "), "attributes are reset behind a frame"

    def compare(self, update: CompositorUpdate, console: Console) -> None:
        """Show an update as Textual does, and compare the terminals."""
        written = update.render_segments(console)
        self.textual.stream.feed(written)
        self.bytes[0] += len(written.encode())
        assert self.ours.seen == self.textual.seen, "\n".join([*self.ours.display, *self.textual.display])


def _pieces(update: ChopsUpdate | LayoutUpdate) -> Iterator[Piece]:
    if isinstance(update, LayoutUpdate):
        for y, strips_of_row in enumerate(update.strips):
            x = 0
            for part in strips_of_row:
                yield Piece(y, x, part)
                x += part.cell_length
        return
    for y, start, end in update.spans:
        for until, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=True):
            if strip is not None and x < end and until > start:
                yield Piece(y, x, strip.crop(0, end - x))


COLOURS: list[str | None] = [None, "default", "red", "bright_cyan", "color(130)", "#15181d", "#93a1aa", "#f2f4f7"]
STYLES = st.builds(
    Style,
    color=st.sampled_from(COLOURS),
    bgcolor=st.sampled_from(COLOURS),
    bold=st.booleans(),
    italic=st.sampled_from([None, None, True]),
    underline=st.sampled_from([None, None, None, True]),
    reverse=st.sampled_from([None, None, None, True]),
    strike=st.sampled_from([None, None, None, True]),
    blink=st.sampled_from([None, None, None, None, True]),
)
FEW_STYLES = st.lists(STYLES, min_size=2, max_size=5)
WORDS = st.sampled_from(["", "a", "case", "✓ passed", "┃", "one two  three", " ", "    ", " " * 11, " " * 34, "x" * 34])
WIDE = st.sampled_from(["漢", "界 ", "e\u0301", "😀", "plain", "a\u0308\u0323b"])


@st.composite
def strips(draw: st.DrawFn, width: int, words: st.SearchStrategy[str], styles: list[Style]) -> Strip:
    """A strip of exactly this width."""
    texts = draw(st.lists(st.tuples(words, st.sampled_from(styles)), max_size=5))
    strip = Strip([Segment(text, style) for text, style in texts if text]).crop(0, width)
    return strip.extend_cell_length(width, draw(st.sampled_from(styles)))


@st.composite
def frames(draw: st.DrawFn) -> list[ChopsUpdate | LayoutUpdate]:
    """Draw a whole screen of two panes, and changes of it."""
    styles = draw(FEW_STYLES)

    def whole() -> LayoutUpdate:
        rows: list[Any] = [
            [draw(strips(LEFT, WORDS, styles)), draw(strips(WIDTH - LEFT, WORDS, styles))] for _ in range(HEIGHT)
        ]
        return LayoutUpdate(rows, Region(0, 0, WIDTH, HEIGHT))

    odd: set[int] = set()
    """Rows that may hold a wide character, of which pyte would show half if it were cut."""

    def part() -> ChopsUpdate:
        rows = sorted(draw(st.sets(st.integers(0, HEIGHT - 1), min_size=1)))
        chops: list[dict[int, Strip | None]] = [{0: None, LEFT: None} for _ in range(HEIGHT)]
        spans = []
        for y in rows:
            if draw(st.integers(0, 5)) == 0 or y in odd:
                words = draw(st.sampled_from([WORDS, WIDE]))
                chops[y] = {0: draw(strips(LEFT, words, styles)), LEFT: draw(strips(WIDTH - LEFT, words, styles))}
                odd.add(y)
                spans.append((y, 0, WIDTH))
                continue
            right = draw(st.booleans())
            x, width = (LEFT, WIDTH - LEFT) if right else (0, LEFT)
            chops[y][x] = draw(strips(width, WORDS, styles))
            spans.append((y, x, x + draw(st.integers(1, width))))
        return ChopsUpdate(chops, spans, [[LEFT, WIDTH] for _ in range(HEIGHT)])

    kinds: list[Callable[[], ChopsUpdate | LayoutUpdate]] = [part, part, part, whole]
    return [whole(), *(draw(st.sampled_from(kinds))() for _ in range(draw(st.integers(1, 5))))]


@settings(max_examples=examples(100), deadline=None)
@given(
    frames(), st.sampled_from([FULL, SIMPLE, EraseCapabilities(keeps_colour=True), EraseCapabilities(within_row=True)])
)
def test_both_outputs_show_the_same(updates: list[ChopsUpdate | LayoutUpdate], erases: EraseCapabilities) -> None:
    both = Both(WIDTH, HEIGHT, erases)
    for update in updates:
        both.update(update)


def test_what_stays_is_not_written() -> None:
    both = Both(WIDTH, HEIGHT, FULL)
    style = Style(color="#93a1aa", bgcolor="#15181d")

    def screen(word: str) -> LayoutUpdate:
        return LayoutUpdate([[Strip([Segment(f"{word:{WIDTH}}", style)])]] * HEIGHT, Region(0, 0, WIDTH, HEIGHT))

    both.update(screen("case one"))
    before = both.bytes[1]
    both.update(screen("case one"))
    assert both.bytes[1] == before
    both.stage.register_output("\x1b[?2026h\x07\x1b]52;c;YWJj\x07")
    assert both.stage.is_valid_for(WIDTH, HEIGHT), "that leaves the cells as they are"
    both.stage.register_output("\x1b[?1049h")
    assert not both.stage.is_valid_for(WIDTH, HEIGHT)
    both.ours.stream.feed("\x1b[3;4H what something else has written")
    both.update(screen("case one"))


def test_a_row_that_terminals_may_measure_differently_is_written_as_a_whole() -> None:
    assert cells_of("a\u200db").is_width_certain is False
    assert cells_of("\u0301x") == ("\u0301", ("x",), False)
    assert cells_of("❤\ufe0f!").cells == ("❤\ufe0f", "", "!")
    stage = OutputStage(FULL)

    def written(text: str) -> str:
        return Frame(stage, Update([Piece(0, 0, Strip([Segment(text)]))]), 8, 1).render_segments(CONSOLE)

    written("👩\u200d💻 a    ")
    assert written("👩\u200d💻 b    ") == "\x1b[1H👩\u200d💻\x1b[1;3H b    "
    assert written("ab b    ").endswith("\x1b[1Hab b    "), "nothing of it stays"
    assert written("ab c    ").endswith("\x1b[1;4Hc")


ENDED = {"22": {"1", "2"}, "23": {"3"}, "24": {"4", "21"}, "25": {"5", "6"}, "27": {"7"}, "28": {"8"}, "29": {"9"}}
ENDED |= {"54": {"51", "52"}, "55": {"53"}}


def test_from_any_attributes_to_any_others() -> None:
    codes = sorted(set.union(*ENDED.values()), key=int)
    all_of_them = [cell_style(attributes=few) for count in range(3) for few in combinations(codes, count)]
    for before, after in product(all_of_them, repeat=2):
        on = set(before.attributes)
        step = before.to(after)
        for code in step[2:-1].split(";") if step else ():
            on = on - ENDED[code] if code in ENDED else on | {code} if code else set()
        assert on == set(after.attributes)


def test_a_link_is_opened_and_closed() -> None:
    stage = OutputStage(FULL)
    linked = Style(link="https://example.test")
    update = Update([Piece(0, 0, Strip([Segment("see ", Style()), Segment("this", linked)]))])
    written = Frame(stage, update, 8, 1).render_segments(CONSOLE)
    assert written.endswith(f"\x1b]8;id={linked._link_id};https://example.test\x1b\\this\x1b]8;;\x1b\\")


def test_terminfo_says_how_a_terminal_erases() -> None:
    assert erasing("no-terminal-of-this-name", 1) in (SIMPLE, FULL)  # terminfo is read once in a process


@asynccontextmanager
async def drawn(app: AbstractAsyncContextManager[Opened]) -> AsyncIterator[Opened]:
    """Run an app that draws each frame at its time."""
    with every_frame():
        async with app as open_app:
            yield open_app


async def test_a_session_of_the_app_looks_as_textual_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(100, 30, FULL)

    def _display(app: Workbench, screen: object, update: object) -> None:
        if isinstance(update, Update):
            both.show(update, app.console)
        app.post_display_hook()

    monkeypatch.setattr(Workbench, "_display", _display)
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with drawn(opened(suites, size=both.size)) as app:

        async def press(*keys: str) -> None:
            await app.press(*keys)
            visible_screen_stack.set(app.app._background_screens)
            both.compare(app.app.screen._compositor.render_full_update(), app.app.console)

        await press("down", "up", "2", "down")
        (run,) = await app.run("1", "r")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Enjoy the 漢字 film! ❤️"))
        app.session.end_batch()
        for key in ("up", "?", "down", "escape", "/", "m", "escape", "3", "down", "enter", "1", "ctrl+p"):
            await press(key)


START_BYTES = 6_000
KEY_BYTES = 2_000
"""Also for a key in the tree that changes all that the other panes show."""


async def test_a_key_on_the_samples_writes_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = OutputStage(FULL)
    written = [0]

    def _display(app: Workbench, screen: object, update: object) -> None:
        if isinstance(update, Update):
            written[-1] += len(Frame(stage, update, 120, 36).render_segments(app.console).encode())
        app.post_display_hook()

    monkeypatch.setattr(Workbench, "_display", _display)
    async with drawn(opened(tmp_path / "none", paths=[bundled("sample_suites")], size=(120, 36))) as app:
        for _ in range(10):
            written.append(0)
            await app.press("down")
    assert written[0] <= START_BYTES
    assert max(written[1:]) <= KEY_BYTES, written
