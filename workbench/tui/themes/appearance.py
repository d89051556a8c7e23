"""The appearance of the app: the available themes, the initial theme, and reloads of the user's themes."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.config.folders import bundled
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.memory import Memory
from workbench.tui.terminal.colour_depth import fitted_to_256
from workbench.tui.terminal.theme import (
    FolderState,
    Palette,
    ThemeFile,
    Themes,
    folder_state,
    load_themes,
    textual_theme,
)

if TYPE_CHECKING:
    from workbench.config.folders import Folders
    from workbench.tui.shell.workbench import Workbench
    from workbench.tui.terminal.environment import TerminalEnvironment


_log = logging.getLogger(__name__)

DARK_THEME, PLAIN_THEME, PLAIN_LIGHT_THEME = "graphite", "sixteen", "sixteen-light"


class Appearance:
    """The themes of one app.

    The initial theme is `theme_name`, from the command line, or else the theme chosen last. A terminal with few
    colours starts with a theme in its own colours."""

    def __init__(self, folders: Folders, terminal: TerminalEnvironment, memory: Memory, theme_name: str | None) -> None:
        self._user_folder = folders.config / "themes"
        self._no_colour = terminal.no_colour
        self._colours = terminal.colours
        self._memory = memory
        self._folder_state: FolderState = ()
        self._themes = Themes({})
        self._read()
        plain = terminal.colours == "standard" or terminal.no_colour
        remembered = memory.read().theme
        chosen = self._themes.by_name.get(remembered or "")
        self.first = DARK_THEME
        """The name of the initial theme."""
        if plain:
            # With at most 16 colours, only themes in the terminal's own colours are sure to be readable.
            self.first = PLAIN_LIGHT_THEME if terminal.light else PLAIN_THEME
        if theme_name is not None and theme_name in self._themes.by_name:
            self.first = theme_name
        elif chosen is not None and (chosen.is_ansi or not plain):
            self.first = chosen.name
        self.unknown: str | None = None
        """The name of the theme on the command line if no such theme exists."""
        if theme_name is not None and theme_name not in self._themes.by_name:
            self.unknown = theme_name
        self.problems_at_start = self._themes.problems
        """Problems at the start with the user's theme files and last choice."""
        if remembered is not None and chosen is None and theme_name is None:
            gone = f"The theme {remembered}, chosen last time, no longer exists: this is {self.first}"
            self.problems_at_start = (gone, *self.problems_at_start)

    @property
    def themes(self) -> tuple[ThemeFile, ...]:
        """All themes in display order."""
        return tuple(self._themes.by_name.values())

    def palette(self, name: str) -> Palette:
        return Palette(self._fitted(self._themes.by_name[name]), no_colour=self._no_colour)

    def register(self, app: Workbench) -> None:
        """Register exactly these themes with the app."""
        for name in set(app.available_themes) - self._themes.by_name.keys():
            app.unregister_theme(name)
        for theme in self.themes:
            app.register_theme(textual_theme(self._fitted(theme)))

    def recolour(self, app: Workbench) -> None:
        """Draw all screens in the current theme."""
        app.palette = self.palette(app.theme)
        for screen in app.screen_stack:
            for view in screen.query(LineView):
                view.redraw()
            screen.refresh()

    def choose(self, app: Workbench) -> None:
        """Open the list of themes. The list previews the theme at the cursor."""
        from workbench.tui.themes.dialog import ThemesScreen

        self.reload_if_changed(app)

        def keep(name: str | None) -> None:
            if name is not None and name in self._themes.by_name:
                app.theme = name
                self._memory.change(lambda known: replace(known, theme=name))

        app.show(ThemesScreen(self.themes, app.theme, lambda name: self._preview(app, name)), keep)

    def reload_if_changed(self, app: Workbench) -> bool:
        """Reload the user's themes if their files changed. Return whether the files changed.

        A current theme that has become invalid keeps its earlier colours."""
        if folder_state(self._user_folder) == self._folder_state:
            return False
        before = self._themes
        self._read(keeping=app.theme)
        new = [problem for problem in self._themes.problems if problem not in before.problems]
        if new:
            app.announce_problems(new)
        if self._themes.by_name != before.by_name:
            self.register(app)
            if self._themes.by_name[app.theme] != before.by_name[app.theme]:
                app.theme_changed()
        return True

    def _read(self, keeping: str | None = None) -> None:
        self._folder_state = folder_state(self._user_folder)
        themes = load_themes(bundled("themes"), self._user_folder)
        # While the file of the current theme has a mistake, for example during an edit, the theme keeps its earlier
        # colours.
        if keeping is not None and keeping not in themes.by_name:
            themes = replace(themes, by_name={**themes.by_name, keeping: self._themes.by_name[keeping]})
        self._themes = themes

    def _fitted(self, theme: ThemeFile) -> ThemeFile:
        if theme.is_ansi or self._colours == "truecolor":
            return theme
        if self._colours == "256":
            return replace(theme, colours=fitted_to_256(theme.colours))
        plain = self._themes.by_name[PLAIN_THEME if theme.dark else PLAIN_LIGHT_THEME]
        return replace(theme, colours=plain.colours)

    def _preview(self, app: Workbench, name: str) -> None:
        # The user may have edited a theme file since the dialog opened.
        self.reload_if_changed(app)
        if name in self._themes.by_name:
            app.theme = name
