"""Completions while TOML is typed: when they are offered, where they stand, and which keys take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.geometry import Region

from workbench.trajectory.messages import ToolDefinition
from workbench.tui.state.form.completions import Completion
from workbench.tui.state.toml_completion import TYPED_TOOL, Offer, offer_at
from workbench.tui.widgets.completion_list import CompletionList
from workbench.tui.widgets.toml_editor import TomlEditor

_ASK_KEYS = frozenset({"ctrl+space", "ctrl+@"})
"""Terminals send the same for both."""


class TomlCompleting:
    """Offers what can stand at the cursor: on Ctrl+Space, and unasked in the name of a tool. `tools` are known ones."""

    def __init__(
        self, editor: TomlEditor, completions: CompletionList, tools: Callable[[], Sequence[ToolDefinition]]
    ) -> None:
        self._editor, self._list, self._tools = editor, completions, tools
        self._offer: Offer | None = None

    def take_key(self, key: str) -> bool:
        """Do what a key says to completions; whether it says anything to them."""
        if key in _ASK_KEYS:
            self._show(asked=True)
            return True
        if not self._list.is_open:
            return False
        if key in ("up", "down"):
            self._list.step(1 if key == "down" else -1)
        elif key == "tab" or (key == "enter" and self._list.current is not None):
            self.choose(self._list.current or self._list.found[0])
        else:
            self.close()
            return key == "escape"
        return True

    def text_changed(self) -> None:
        """Offer again what fits what was typed."""
        line, column = self._editor.typed.cursor
        if TYPED_TOOL.search(self._editor.typed.lines[line][:column]) is not None:
            self._show(asked=False)
        else:
            self.close()

    def choose(self, completion: Completion) -> None:
        """Put a completion where what it completes stands."""
        offer = self._offer
        self.close()
        if offer is not None:
            self._editor.put_in_place(offer.start, completion.text)
            self.close()

    def close(self) -> None:
        """Offer nothing."""
        self._offer = None
        if self._list.is_open:
            self._list.close()

    def _show(self, *, asked: bool) -> None:
        typed = self._editor.typed
        offer = offer_at(typed.lines, typed.cursor, self._tools())
        if offer is None or (not asked and self._is_all_there(offer)):
            self.close()
            return
        self._offer = offer
        self._list.offer(offer.found, 0 if asked else None)
        size = self._editor.size
        self._list.place(self._editor.cell_of((typed.cursor[0], offer.start)), Region(0, 0, size.width, size.height))

    def _is_all_there(self, offer: Offer) -> bool:
        """Whether the only completion is what has been typed already."""
        line, column = self._editor.typed.cursor
        return len(offer.found) == 1 and self._editor.typed.lines[line][offer.start : column] == offer.found[
            0
        ].text.rstrip('"')
