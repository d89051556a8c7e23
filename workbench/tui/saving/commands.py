"""Saving suites, and reloading them from disk."""

from __future__ import annotations

from collections.abc import Callable

from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.stage import Stage
from workbench.tui.saving.reading import Reader
from workbench.tui.saving.saver import Saver
from workbench.tui.tree.selection import Selection


class SavingCommands:
    """Saves the selected suite or all suites, and reads anew what others changed."""

    def __init__(
        self, stage: Stage, selection: Selection, saver: Saver, reader: Reader, read_results: Callable[[], object]
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._saver = saver
        self._reader = reader
        self._read_results = read_results
        self.methods: dict[str, Callable[[], object]] = {
            "save": self._save,
            "save.all": lambda: saver.save_soon(selection.open_suites.dirty),
            "save.as": self._save_as,
            "reload": self._read_again,
        }

    def _save(self) -> None:
        suite = self._selection.suite
        if suite is None:
            return
        if suite.invalid_text_message is not None and not suite.dirty:
            self._stage.announce(f"Nothing to save but {suite.invalid_text_message}", "warned", GLYPHS.warned)
        else:
            self._saver.save_soon((suite,))

    def _save_as(self) -> None:
        if (suite := self._selection.suite) is not None:
            self._saver.save_as_soon(suite)

    def _read_again(self) -> None:
        self._saver.put_off.clear()
        self._reader.read_soon()
        self._read_results()
