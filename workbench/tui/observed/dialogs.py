"""The dialogs of a recording, and the making of cases from recorded conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from textual.app import ComposeResult
from textual.widgets import Input

from workbench.authoring.case_list import CaseListChange, suite_name, with_new_cases
from workbench.authoring.document import HEAD
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import NotEditableError
from workbench.config.secrets import Secrets
from workbench.exchange.importers.conversations import ImportedFile, case_of
from workbench.exchange.importers.import_files import (
    RULE_OF_NEW_SUITES,
    ImportedSuite,
    fit_to_suite,
    make_suite,
    register_keys,
    run_of,
)
from workbench.exchange.importers.source_files import RefusedError
from workbench.exchange.observed.proxy import ListenError, parse_listen_address, parse_upstream
from workbench.numerals import count_text, counted
from workbench.show.difference import difference
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, sign_paragraph, with_margin
from workbench.show.visible import one_line
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SpliceError
from workbench.trajectory.events import JsonValue
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.dialogs import Option, PreviewScreen, TextView, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.questions import NameScreen, QuestionScreen, TextPromptScreen
from workbench.tui.kit.stage import Announce, in_background
from workbench.tui.observed.live import SeenConversation
from workbench.tui.tree.new_suites import NewSuites, WhichSuiteScreen
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class TypedRecording(NamedTuple):
    """What the user typed for a recording: the endpoint (`upstream`), and the address of the proxy (`listen`)."""

    upstream: str
    listen: str


class ObserveScreen(TextPromptScreen[TypedRecording]):
    """Asks for the endpoint and the proxy's address.

    `problem` is why the last attempt failed, "" before any attempt."""

    def __init__(self, before: TypedRecording, problem: str) -> None:
        super().__init__(
            "Record a program and its model",
            before.upstream,
            "A proxy passes requests on to the endpoint and shows each conversation. The endpoint: openai, anthropic, "
            "or a base URL.",
            _why_not_upstream,
            keys_line(("Enter", "begin"), ("Tab", "other field"), ("Esc", "leave")),
        )
        self._listen = before.listen
        self._problem = problem

    def body(self) -> ComposeResult:
        yield from super().body()
        hint = "The address of the proxy on this machine; port 0 picks a free port."
        yield TextView(lambda width: with_margin(hint, width), "where")
        yield SafeInput(self._listen, widget_id="listen")

    def on_mount(self) -> None:
        for texts in self.query(TextView):
            # Texts cannot get the focus, so Tab goes from field to field.
            texts.can_focus = False

    def _lines(self, width: int) -> list[Line]:
        lines = super()._lines(width)
        if self._problem:
            lines += with_margin(f"{GLYPHS.warned} {self._problem}", width, "warned")
        return lines

    def submit(self) -> None:
        try:
            parse_listen_address(self._listens)
        except ListenError as error:
            self.show_notice(str(error))
        else:
            super().submit()

    @property
    def _listens(self) -> str:
        return self.query_one("#listen", Input).value.strip()

    def answer(self, text: str) -> None:
        self.dismiss(TypedRecording(text, self._listens))


def _why_not_upstream(text: str) -> str | None:
    try:
        parse_upstream(text)
    except ListenError as error:
        return str(error)
    return None


class WhereScreen(WhichSuiteScreen):
    """Asks which suite gets a new case. Returns the index of the suite."""

    TITLE_LINE = "Add the case to"
    VERB = "show what changes"


class EndScreen(QuestionScreen[Literal["end", "no"]]):
    """Asks whether to end a recording that has active requests, or conversations that are not cases yet."""

    TITLE_LINE = "End the recording?"

    def __init__(self, under_way: int, unused: int) -> None:
        texts = []
        if under_way:
            texts.append(f"In {counted(under_way, 'conversation')} the model is being asked; that request is dropped.")
        if unused:
            if unused == 1:
                lost = "1 conversation is not a case yet"
            else:
                lost = f"{count_text(unused)} conversations are not cases yet"
            texts.append(f"{lost}, and will be forgotten.")

        def lines(width: int) -> list[Line]:
            shown: list[Line] = [EMPTY]
            for text in texts:
                shown += with_margin(text, width)
            return [*shown, EMPTY]

        answers: list[tuple[Literal["end", "no"], Option]] = [
            ("end", Option("end it", "")),
            ("no", Option("no", "keep recording")),
        ]
        super().__init__(lines, answers, leaving="keep recording")


class CaseMaker:
    """Makes cases from recorded conversations.

    Each case is one undo step. The conversation becomes the case's first run."""

    def __init__(self, app: Workbench, selection: Selection, new_suites: NewSuites, secrets: Secrets) -> None:
        self._app = app
        self._selection = selection
        self._new_suites = new_suites
        self._secrets = secrets

    async def make(self, conversation: SeenConversation, announce: Announce) -> str | None:
        """Make a case of a conversation. The user chooses a suite and confirms the change.

        Returns where the case is, as text for the user, `None` if no case was made."""
        try:
            return await self._make_case(conversation, announce)
        except (RefusedError, NotEditableError, SpliceError) as error:
            announce(f"No case was made: {one_line(str(error))}", "warned", GLYPHS.warned)
            return None

    async def _make_case(self, conversation: SeenConversation, announce: Announce) -> str | None:
        selected = self._selection.suite
        suites = [suite for suite in self._selection.open_suites.suites if suite.why_not_editable is None]
        # The selected suite comes first, because it is the most likely choice.
        suites.sort(key=lambda suite: suite is not selected)
        options = [Option(one_line(suite.path.name), counted(len(suite.cases), "case")) for suite in suites]
        options.append(Option("a new suite", "with its tools"))
        if not suites:
            return await self._add_to_new_suite(conversation, announce)
        which = await self._app.ask(WhereScreen(options))
        if which is None:
            return None
        if which == len(suites):
            return await self._add_to_new_suite(conversation, announce)
        return await self._add_to_suite(suites[which].path, conversation, announce)

    async def _add_to_suite(self, path: Path, conversation: SeenConversation, announce: Announce) -> str | None:
        made = await in_background(lambda: self._single_case_suite(conversation, path))
        suite = self._selection.open_suites.editable(path)
        change = _change(suite, made, conversation)
        if not await self._ask_to_add(path, suite.document.text, change.document.text, made):
            return None
        # The suite may have changed while the question was open, so the change is computed again.
        suite = self._selection.open_suites.editable(path)
        change = _change(suite, made, conversation)
        self._selection.open_suites.change(suite, change.document, change.summary, case=change.case)
        return await self._select_new_case(suite, change.case, made, announce, f"{key_for('edit.undo')} takes it back")

    async def _add_to_new_suite(self, conversation: SeenConversation, announce: Announce) -> str | None:
        question = NameScreen("New suite", "", self._new_suites.where, self._new_suites.refusal)
        name = await self._app.ask(question)
        path = self._new_suites.named(name) if name is not None else None
        if not isinstance(path, Path):
            return None
        made = await in_background(lambda: self._single_case_suite(conversation, path))
        if not await self._ask_to_add(path, "", made.file.text, made):
            return None
        suite = OpenSuite.new(path, made.file.text)
        self._new_suites.add(suite)
        return await self._select_new_case(
            suite, suite.cases[0].key, made, announce, f"{key_for('save')} writes its file"
        )

    async def _select_new_case(
        self, suite: OpenSuite, key: str | None, imported: ImportedSuite, announce: Announce, then: str
    ) -> str | None:
        self._selection.select(suite.path, key)
        file, outline = suite.file, next(each for each in suite.cases if each.key == key)
        if file.suite is not None:
            case, runs = file.suite.cases[outline.index], imported.cases[0].runs
            graded = await in_background(lambda: [(run_of(file, case, run, at), run) for at, run in enumerate(runs)])
            for (planned, events, result), run in graded:
                self._selection.book.recall(planned, run.started_at, events, result, is_unsaved=True)
        case_place = f"{outline.name} in {suite.path.name}"
        announce(f"New case {one_line(case_place)}; {then}", "passed", GLYPHS.passed)
        return case_place

    def _single_case_suite(self, conversation: SeenConversation, path: Path) -> ImportedSuite:
        """Return a suite with the conversation as its only case. Text that looks like a key is replaced by a name.

        Raises:
            RefusedError: No case can be made of the conversation."""
        case = case_of(conversation.conversation)
        texts: list[JsonValue] = [cast("JsonValue", case.table)]
        for run in case.runs:
            for each in run.rounds:
                texts += (each.text, each.reasoning)
        # Text that looks like a key is registered as a secret now, so that `make_suite` replaces it by a name.
        register_keys(texts, f"RECORDED_KEY_{conversation.number}", self._secrets)
        return make_suite(ImportedFile((case,), suite=RULE_OF_NEW_SUITES), suite_name(path), path, self._secrets)

    async def _ask_to_add(self, path: Path, before: str, after: str, imported: ImportedSuite) -> bool:
        notes, changed = dict.fromkeys(note.why for note in imported.cases[0].notes), difference(before, after)

        def lines(width: int) -> list[Line]:
            note_lines = []
            for why in notes:
                note_lines.extend(sign_paragraph(GLYPHS.dot, why, "muted", width - 2, 2))
            return [EMPTY, *note_lines, EMPTY, *changed.drawn(width), EMPTY]

        return await self._app.ask(PreviewScreen(f"A case in {one_line(path.name)}", lines, "add it")) or False


def _change(suite: OpenSuite, imported: ImportedSuite, conversation: SeenConversation) -> CaseListChange:
    """Return the change that adds a case at the end of a suite.

    Raises:
        RefusedError: The suite would have more errors than before."""
    document = suite.document
    table = fit_to_suite(imported.cases[0].table, document.table(HEAD))
    change = with_new_cases(document, [table], f"Case of conversation {conversation.number}")
    # A suite that already has errors may get a case, provided that the case adds no errors.
    if len(errors := parse_suite(change.document.text, suite.path).errors) > len(suite.file.errors):
        raise RefusedError(f"the case does not fit into {suite.path.name}: {errors[-1].message}")
    return change
