"""The dialog that chooses a theme. The screen behind previews the theme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import ChoiceList, Dialog, Option, keys_line
from workbench.tui.terminal.theme import ThemeFile


class ThemesScreen(Dialog[str]):
    """Asks for a theme. Closes with the theme's name. Without an answer, the former theme returns."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE: ClassVar[str] = "Themes"

    def __init__(self, themes: Sequence[ThemeFile], current: str, preview: Callable[[str], None]) -> None:
        super().__init__(keys_line(("↑↓", "try"), ("Enter", "keep"), ("Esc", "cancel")))
        self._themes = tuple(themes)
        self._current = current
        self._preview = preview

    def body(self) -> ComposeResult:
        names = [theme.name for theme in self._themes]
        options = [Option(one_line(theme.title)) for theme in self._themes]
        yield _ThemeList(options, self._show, names.index(self._current) if self._current in names else 0)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(_ThemeList))

    @on(ChoiceList.Chosen)
    def _chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(self._themes[event.index].name)

    def _show(self, index: int) -> None:
        self._preview(self._themes[index].name)

    def action_leave(self) -> None:
        # The preview has changed the theme of the whole app, so the former theme is restored.
        self._preview(self._current)
        self.dismiss(None)


class _ThemeList(ChoiceList):
    def __init__(self, options: Sequence[Option], show: Callable[[int], None], cursor: int) -> None:
        super().__init__(options, cursor)
        self._show_theme = show

    def moved(self) -> None:
        self._show_theme(self.cursor)
