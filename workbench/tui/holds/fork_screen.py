"""The dialog that prepares a fork of the displayed run, and starts the fork."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.config.agents import agent_named
from workbench.numerals import counted
from workbench.providers.built_in import OFFLINE
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import PlainColours
from workbench.show.spans import EMPTY, Line, Role, Span, wrap
from workbench.show.visible import model_label, one_line
from workbench.suite.settings import all_model_names
from workbench.tui.kit.dialogs import ChoiceList, Dialog, Option, TextView, keys_line
from workbench.tui.kit.edited_text import MAX_LINE_CHARS, MAX_SHOWN_LINES
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.models.choices import model_choices
from workbench.tui.run_book.forks import place_text
from workbench.tui.runs.fork_draft import ForkDraft, ForkKey, TextName, fork_draft

if TYPE_CHECKING:
    from workbench.authoring.case_list import CurrentCase
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.workbench import Workbench


_TITLES: dict[TextName, str] = {"system": "System prompt", "user": "Message of the user", "result": "Result"}
_MAX_SHOWN_CHARS = 200
"""The maximum number of characters of a text in its row."""

_MIN_ROWS = 2
"""The minimum height of the editor."""

_OTHER_ROWS = 6
"""The rows around the texts: the frame, the title, the keys, and the margin."""


class ForkScreen(Dialog[bool]):
    """Edits the draft of a fork. Returns `True` if the user starts the fork.

    Every change is saved in the draft at once, so leaving the dialog loses nothing."""

    TITLE_LINE: ClassVar[str] = "Fork"
    DEFAULT_CSS = """
    ForkScreen > Vertical { width: 100; }
    ForkScreen TextEditor { display: none; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", show=False),
        Binding("right", "choose(1)", show=False),
        Binding("delete,backspace", "reset", show=False),
        Binding("f3", "switch_error", show=False),
    ]

    def __init__(self, app: Workbench, draft: ForkDraft) -> None:
        self._app = app
        self._draft = draft
        self._texts: tuple[TextName, ...] = ("system",)
        if draft.user is not None:
            self._texts += ("user",)
        if draft.result is not None:
            self._texts += ("result",)
        self._typing: TextName | None = None
        super().__init__(self._keys_now())

    def body(self) -> ComposeResult:
        yield TextView(self._explained, "reading")
        yield ChoiceList(self._options(), widget_id="choices")
        yield TextEditor(self._text_changed, PlainColours, "fork-text")

    def on_mount(self) -> None:
        self.set_focus(self._choices)

    @property
    def _choices(self) -> ChoiceList:
        return self.query_one("#choices", ChoiceList)

    @property
    def _editor(self) -> TextEditor:
        return self.query_one(TextEditor)

    def _explained(self, width: int) -> list[Line]:
        place = place_text(self._draft.fork)
        text = f"Continues separately from {place}. Earlier steps are replayed without asking any model or tool."
        return [EMPTY, *((Span(f" {row}"),) for row in wrap(one_line(text), max(width - 2, 10))), EMPTY]

    def _options(self) -> list[Option]:
        # `_chosen` depends on the order of these rows: fork, model, texts, error flag of a result.
        draft = self._draft
        choice = draft.models[draft.model]
        of_model = []
        if len(draft.models) > 1:
            of_model.append(f"{draft.model + 1} of {len(draft.models)}")
        if not draft.model:
            of_model.append("the run's own")
        detail = _join_parts(*of_model, choice.detail)
        short = _join_parts(*of_model, choice.short)
        options = [Option("Fork"), Option(f"model   {model_label(choice.name)}", detail, short)]
        options += [Option(f"{name}  {self._shown(name)}") for name in self._texts]
        if "result" in self._texts:
            options.append(Option("tool error", checked=draft.is_error))
        return options

    def _shown(self, name: TextName) -> str:
        text = one_line(self._draft.text(name)[:_MAX_SHOWN_CHARS])
        if not self._draft.text(name):
            text = {"system": "none", "user": "as the case says"}.get(name, "(empty)")
        if self._draft.is_edited(name):
            return f"{GLYPHS.by_hand} {text}"
        return text

    def _say(self) -> None:
        self._choices.options = self._options()
        self._choices.repaint()
        self.set_keys(self._keys_now())

    def _keys_now(self) -> Line:
        back = ("Esc", "back, kept as typed")
        if self._typing == "result":
            return keys_line(("F3", "no tool error" if self._draft.is_error else "tool error"), back)
        if self._typing is not None:
            return keys_line(back)
        # Esc is the second key, because only the first keys are visible in a narrow terminal.
        keys = [("Enter", "fork, or edit"), ("Esc", "leave"), ("←→", "model")]
        if any(self._draft.is_edited(name) for name in self._texts):
            keys.append(("Del", "as it was"))
        return keys_line(*keys)

    def _announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        self.show_notice(text, role, sign)

    @property
    def _under_cursor(self) -> TextName | None:
        """The text that the selected row edits, if any. In the row that marks a tool error, it is the result's text."""
        at = self._choices.cursor - 2
        if at >= 0:
            return self._texts[min(at, len(self._texts) - 1)]
        return None

    @on(ChoiceList.Chosen)
    def _chosen(self, event: ChoiceList.Chosen) -> None:
        if event.index == 0:
            self.dismiss(True)
        elif event.index == 1:
            self.action_choose(1)
        elif event.index == len(self._texts) + 2:
            self.action_switch_error()
        elif (name := self._under_cursor) is not None:
            self._edit(name)

    def action_choose(self, step: int) -> None:
        if self._typing is None:
            self._draft.choose(step)
            self._say()

    def action_reset(self) -> None:
        """Replace the text of the selected row by the text of the forked run."""
        if self._typing is None and (name := self._under_cursor) is not None:
            self._draft.reset(name)
            self._say()

    def action_switch_error(self) -> None:
        """Mark the result as a tool error, or remove the mark."""
        if self._typing in (None, "result") and "result" in self._texts:
            self._draft.is_error = not self._draft.is_error
            self._say()

    def _edit(self, name: TextName) -> None:
        text = self._draft.text(name)
        # The editor keeps all lines and wraps none, so very long texts would make the editor slow.
        lines = text.split("\n")
        if len(lines) > MAX_SHOWN_LINES or max(map(len, lines)) > MAX_LINE_CHARS:
            self._announce(f"{counted(len(text), 'character')} are too many to type here", "warned", GLYPHS.warned)
            return
        self._typing = name
        editor = self._editor
        editor.begin(text, 1, (0, 0), 0)
        editor.typed.move("text_end" if len(lines) == 1 else "line_start")
        self._turn(f"Fork: {_TITLES[name]}")
        self.set_focus(editor)

    def _text_changed(self, text: str, step: int) -> None:
        if self._typing is not None:
            self._draft.type(self._typing, text)
            self._fit()

    @on(TextEditor.Ended)
    def _ended(self) -> None:
        self._typing = None
        self._turn(self.heading)
        self.set_focus(self._choices)

    def _turn(self, title: str) -> None:
        typing = self._typing is not None
        self._editor.display = typing
        self._choices.display = not typing
        self.query_one("#reading").display = not typing
        self.set_title(title)
        self._fit()
        self._say()

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def _fit(self) -> None:
        rows = max(self._editor.line_count(), _MIN_ROWS)
        self._editor.styles.height = max(min(rows, self.app.size.height - _OTHER_ROWS), _MIN_ROWS)

    @on(TextEditor.Copied)
    def _copied(self, event: TextEditor.Copied) -> None:
        self._app.copy(event.text, event.what, self._announce)


def _join_parts(*parts: str) -> str:
    return f" {GLYPHS.dot} ".join(filter(None, parts))


class Forker:
    """Forks the displayed run. Drafts are kept until their fork starts."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._open_suites = app.open_suites
        self._drafts: dict[ForkKey, ForkDraft] = {}

    def fork(self) -> None:
        """Show the draft of a fork that begins at the cursor. Start the fork if the user confirms."""
        run = self._selection.run
        if run is None:
            return
        now = self._open_suites.current_case((run.path, run.case_id))
        if now is None:
            self._refused("the case of this run no longer exists or has errors")
            return
        draft = self._draft(run, now)
        if (why := draft.why_not(now)) is not None:
            self._refused(why)
            return
        # The dialog edits the draft in place and may be left without a fork, so the draft is stored now.
        self._drafts[draft.key] = draft

        def start(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self._app.work(self._start(draft), group="start")

        self._app.show(ForkScreen(self._app, draft), start)

    def _draft(self, run: RunRecord, current: CurrentCase) -> ForkDraft:
        files, workspace = self._open_suites.files, self._open_suites.workspace
        named = [each.planned.asked_model for each in workspace.recorded]
        models = model_choices(self._app.program, files, self._selection.models, named)
        likely: tuple[str, ...] = ()
        if run.recorded:
            # A recording names its model, but not the model's endpoint. The fork therefore proposes another model.
            recorded = workspace.recording_at(run.path)
            if recorded is not None and not recorded.known:
                likely = (*self._selection.models, *all_model_names(current.suite), OFFLINE)
        # Agents are left out, because an agent cannot continue a given conversation.
        choices = tuple(choice for choice in models.choices if agent_named(choice.name) is None)
        draft = fork_draft(run, self._app.main.run_pane.run_list.place, current, choices, likely)
        if (before := self._drafts.get(draft.key)) is not None:
            draft.resume(before)
        return draft

    async def _start(self, draft: ForkDraft) -> None:
        why = await self._app.services.starter.fork(draft)
        if why is not None:
            self._refused(why)
            return
        self._drafts.pop(draft.key, None)
        # Show the new fork, which is the last of its run.
        forks = [index for index, run in enumerate(self._selection.runs) if run.origin is draft.run]
        # There are no forks here if the user has selected another case meanwhile.
        if forks:
            self._app.main.show_run_pane()
            self._selection.choose_run(forks[-1])
        self._app.announce(f"Forked from {place_text(draft.fork)}; earlier steps are replayed", "text", GLYPHS.fork)

    def _refused(self, why: str) -> None:
        self._app.announce(f"Not forked: {why}", "warned", GLYPHS.warned)
