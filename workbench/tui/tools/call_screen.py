"""One tool called by hand: its parameters as a form, what would be sent, what was answered, and what to do with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from workbench.authoring.accepting.redaction import table_without_secrets
from workbench.authoring.from_calls import case_expecting, case_with_mock
from workbench.batches.serving import ServerOf
from workbench.reports.visible import one_line
from workbench.suite.splice import SpliceError
from workbench.tools.answer import ToolsError
from workbench.tools.by_hand import Executed
from workbench.trajectory.messages import JsonValue
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.closing import ClosesOnce
from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.dialogs import keys_line
from workbench.tui.kit.painting import Bar
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.prose import title_line
from workbench.tui.lines.spans import Line, Role, Span
from workbench.tui.lines.words import many
from workbench.tui.runs.execution_dialog import HandExecutionScreen
from workbench.tui.tools.call_form import CallForm, is_read_only
from workbench.tui.tools.call_lines import CallOutcome, CallPicture, call_picture
from workbench.tui.tools.call_view import CallView

if TYPE_CHECKING:
    from workbench.tools.grant import Grant
    from workbench.tui.shell.workbench import Workbench


class CallScreen(ClosesOnce[None], Screen[None]):
    """The form of one tool. `grant` asks for trust; it is `None` when the server may not be started."""

    DEFAULT_CSS = """
    CallScreen { layout: vertical; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "call", show=False),
        Binding("x", "stop", show=False),
        Binding("y", "copy", show=False),
        Binding("m", "take('mock')", show=False),
        Binding("a", "take('expected')", show=False),
        Binding("escape", "back", show=False),
    ]
    AUTO_FOCUS = "#call-view"

    def __init__(
        self, app: Workbench, form: CallForm, server: ServerOf, *, grant: Callable[[], Awaitable[Grant | None]]
    ) -> None:
        super().__init__()
        self._workbench = app
        self._form = form
        self._server = server
        self._grant = grant
        self._outcome = CallOutcome()
        self._sent: dict[str, JsonValue] = {}
        self._calling: Future[Executed] | None = None

    def compose(self) -> ComposeResult:
        yield Bar("call-title")
        yield CallView(self._form, self._picture, "call-view")
        yield KeyBar("call-keys")

    def on_mount(self) -> None:
        tool = self._form.tool
        left: Line = (Span(" Call ", "badge"), Span(f" {one_line(tool.name)}", "tool"))
        marks: Role = "passed" if is_read_only(tool.annotations) else "warned"
        said = "read-only " if is_read_only(tool.annotations) else "not read-only: asks first "
        end: Line = (Span(said, marks),)
        full: Line = (Span(f"on {one_line(self._server.server.name)} {GLYPHS.dot} ", "muted"), *end)
        self.query_one("#call-title", Bar).say(lambda width: title_line(left, (full, end), width))
        self._say_keys()

    def on_unmount(self) -> None:
        if self._calling is not None:
            self._calling.cancel()

    @property
    def _view(self) -> CallView:
        return self.query_one("#call-view", CallView)

    def _picture(self, width: int) -> CallPicture:
        return call_picture(self._form, self._outcome, width, self._workbench.program.secrets)

    def _say_keys(self) -> None:
        pairs = [("c", "call"), ("Enter", "type"), ("←→", "choose"), ("Esc", "back")]
        if self._view.is_typing:
            pairs = [("Enter", "keep"), ("Tab", "keep and go on"), ("Esc", "as it was")]
        elif self._outcome.running:
            pairs = [("x", "stop waiting")]
        elif self._outcome.executed is not None:
            pairs[1:1] = [("m", "use as mock"), ("a", "expect it"), ("y", "copy")]
        self.query_one("#call-keys", KeyBar).announce(keys_line(*pairs))

    def _announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        self.query_one("#call-keys", KeyBar).announce((Span(f" {sign} {one_line(text)}", role),))

    def on_descendant_focus(self) -> None:
        self._say_keys()

    def action_back(self) -> None:
        """Leave the screen; what was typed is kept."""
        self.dismiss()

    # Calling

    def action_call(self) -> None:
        """Call the tool, after asking where it may change something."""
        if self._outcome.running:
            return
        problems = self._form.problems
        if problems:
            first = next(iter(problems))
            more = f" (and {many(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
            place = f"{first}: " if first else ""
            self._announce(f"Not called: {place}{problems[first]}{more}", "warned", GLYPHS.warned)
            return
        self.run_worker(self._call(), group="start")

    async def _call(self) -> None:
        tool, arguments = self._form.tool, dict(self._form.arguments)
        grant = await self._grant()
        if grant is None:
            self._announce("Not called: the suite is not trusted", "warned", GLYPHS.warned)
            return
        if not is_read_only(tool.annotations):
            question = HandExecutionScreen(tool, arguments, self._workbench.program.secrets)
            if await self._workbench.push_screen_wait(question) != "yes":
                self._announce("Not called", "text", GLYPHS.stopped)
                return
        serving = await self._workbench.runner.open_serving()
        calling = self._calling = serving.call(self._server, grant, tool.name, arguments)
        self._sent = dict(arguments)
        self._show(CallOutcome(running=True))
        try:
            executed = await asyncio.wrap_future(calling)
            self._show(CallOutcome(executed=executed))
        except ToolsError as error:
            self._show(CallOutcome(error=str(error)))
        except asyncio.CancelledError:
            if self.is_mounted and calling.cancelled():
                self._show(CallOutcome(error="you did not wait for the answer; the tool may have been executed"))
            else:
                raise

    def _show(self, outcome: CallOutcome) -> None:
        if self.is_mounted:
            self._outcome = outcome
            self._view.show_anew()
            self._view.show_answer()
            self._say_keys()

    def action_stop(self) -> None:
        """Wait no longer for the answer."""
        if self._calling is not None:
            self._calling.cancel()

    def action_copy(self) -> None:
        """Copy the answer, or what would be sent."""
        executed = self._outcome.executed
        if executed is not None:
            text, what = executed.answer.content, "the answer"
        else:
            text, what = json.dumps(self._form.arguments, ensure_ascii=False, indent=2), "the arguments"
        copy_text(self._workbench, text, what, self._announce)

    # Using what was answered

    def action_take(self, what: Literal["mock", "expected"]) -> None:
        """Put the call into the case under the tree's cursor, as a mock or as an expected call."""
        executed, main = self._outcome.executed, self._workbench.main
        suite, row = main.selected_suite, main.suites.selected
        if executed is None:
            self._announce("Call the tool first", "warned", GLYPHS.warned)
            return
        if suite is None or row is None or row.case is None or suite.path != self._server.suite_file:
            name = self._server.suite_file.name
            self._announce(f"Put the cursor of the tree on a case of {name}, then come back", "warned", GLYPHS.warned)
            return
        tool, arguments, secrets = self._form.tool.name, self._sent, self._workbench.program.secrets
        try:
            if (why := suite.why_not_editable) is not None:
                raise ValueError(why)
            case = before = suite.document.table(row.case.index)
            if what == "mock":
                case, said = case_with_mock(case, tool, arguments, executed.answer), f"Mock of {tool}"
            else:
                case, said = case_expecting(case, tool, arguments), f"Expect {tool}"
            case = table_without_secrets(case, before, secrets)
            main.open_suites.change(suite, suite.document.with_case(row.case.index, case), said, case=row.case.key)
        except (SpliceError, ValueError, IndexError) as error:
            self._announce(f"Nothing was changed: {error}", "warned", GLYPHS.warned)
            return
        self._announce(f"{said}, in {row.case.name}; Ctrl+Z on the main screen takes it back", "passed", GLYPHS.passed)
