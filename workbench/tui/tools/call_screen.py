"""The screen for calling one tool by hand: its parameters as a form, the request, the answer, and ways to use them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from workbench.authoring.from_calls import case_expecting, case_with_mock
from workbench.authoring.proposal import table_without_secrets
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.server_calls import Executed, ServerOf
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Role, Span, title_line
from workbench.show.visible import one_line
from workbench.suite.render import Table
from workbench.suite.splice import SpliceError
from workbench.tools.answer import ServerError, ToolsError
from workbench.trajectory.events import JsonValue
from workbench.tui.kit.actions import Action, Situation, action, key_for
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.painting import Bar
from workbench.tui.kit.side_screen import Varied
from workbench.tui.kit.stage import Announce
from workbench.tui.runs.dialogs import HandExecutionScreen
from workbench.tui.runs.runner import Runner
from workbench.tui.tools.call_lines import CallForm, CallOutcome, CallPicture, call_picture, is_read_only
from workbench.tui.tools.call_view import CallView

if TYPE_CHECKING:
    from workbench.tools.pool import Grant
    from workbench.tui.shell.workbench import Workbench


TYPING: tuple[Action, ...] = (
    Action("call.typing.keep", "Keep the argument", ("enter",), "call", "keep"),
    Action("call.typing.next", "Keep it, and go on with the next one", ("tab",), "call", "keep and go on"),
    Action("call.typing.back", "Leave the argument as it was", ("escape",), "call", "as it was"),
)
"""The keys shown in the key bar while an argument is typed. The field handles them itself."""


@dataclass(frozen=True)
class CallNow(Situation):
    """The situation of a call by hand: whether it is under way, and whether there is an answer."""

    running: bool = False
    answered: bool = False


def _make_call(now: CallNow) -> str | None:
    return f"the tool is being called; {key_for('call.stop')} stops waiting" if now.running else None


def _stop_waiting(now: CallNow) -> str | None:
    return None if now.running else "the tool is not being called"


def _answered(now: CallNow) -> str | None:
    return None if now.answered else "call the tool first"


class NotInCaseError(Exception):
    """Raised when the tree's cursor is not on a case of the suite in question."""


IntoCase = Callable[[Path, Callable[[Table], Table], str], str]
"""Changes the selected case if it belongs to this suite file. The text describes the change. Returns the name of the
case. Raises NotInCaseError, and whatever changing a case raises."""


class CallScreen(SearchedScreen[None]):
    """The form of one tool. `grant` asks for trust and returns `None` if the server may not be started; `show_log`
    shows the log of the server."""

    NAME = "call"
    FIRST = ("call",)
    TITLE_IN_TEXT = "a call by hand"
    VARIED = (Varied("back", title="Leave the screen; what was typed stays"),)
    AUTO_FOCUS = "#call-view"

    def __init__(
        self,
        stage: Workbench,
        form: CallForm,
        server: ServerOf,
        *,
        runner: Runner,
        secrets: Secrets,
        grant: Callable[[], Awaitable[Grant | None]],
        into_case: IntoCase,
        show_log: Callable[[Announce], None],
    ) -> None:
        super().__init__(stage)
        self._form = form
        self._server = server
        self._runner = runner
        self._secrets = secrets
        self._grant = grant
        self._into_case = into_case
        self._show_log = show_log
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
        text = "read-only " if is_read_only(tool.annotations) else "not read-only: asks first "
        end: Line = (Span(text, marks),)
        full: Line = (Span(f"on {one_line(self._server.server.name)} {GLYPHS.dot} ", "muted"), *end)
        self.query_one("#call-title", Bar).say(lambda width: title_line(left, (full, end), width))
        self._show_bars()

    def on_unmount(self) -> None:
        if self._calling is not None:
            self._calling.cancel()

    @property
    def _view(self) -> CallView:
        return self.query_one("#call-view", CallView)

    def _picture(self, width: int) -> CallPicture:
        return call_picture(self._form, self._outcome, width, self._secrets)

    @property
    def situation(self) -> CallNow:
        running, answered = self._outcome.running, self._outcome.executed is not None
        return CallNow(has_text=True, running=running, answered=answered)

    def _offered(self) -> list[tuple[Action, bool]]:
        if self._view.is_typing:
            return [(action, True) for action in TYPING]
        # Unavailable actions are hidden here, since most are unavailable before the call.
        offered = [each for each in super()._offered() if each[1]]
        return [each for each in offered if each[0].id == "call.stop"] if self._outcome.running else offered

    def on_descendant_focus(self) -> None:
        self._show_bars()

    @action("enter", "Type the argument", label="type", changes=True)
    def do_type(self) -> None:
        """Type the argument under the cursor."""
        self._view.open_field()

    @action("right space", "The next value, of those that the schema lists", changes=True)
    def do_next(self) -> None:
        """Select the next value that the schema lists."""
        self._view.choose(1)

    @action("left", "The value before, of those that the schema lists", changes=True)
    def do_previous(self) -> None:
        """Select the previous value that the schema lists."""
        self._view.choose(-1)

    @action("del backspace", "Remove the argument", changes=True)
    def do_clear(self) -> None:
        """Remove the argument."""
        self._view.clear_argument()

    # Calling

    @action("r", "Run the call with these arguments", label="call", needs=_make_call, changes=True)
    def do_call(self) -> None:
        """Call the tool, after confirmation if it may change something."""
        problems = self._form.problems
        if problems:
            first = next(iter(problems))
            more = f" (and {counted(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
            place = f"{first}: " if first else ""
            self.announce(f"Not called: {place}{problems[first]}{more}", "warned", GLYPHS.warned)
            return
        self.run_worker(self._call(), group="start")

    async def _call(self) -> None:
        tool, arguments = self._form.tool, dict(self._form.arguments)
        grant = await self._grant()
        if grant is None:
            self.announce("Not called: the suite is not trusted", "warned", GLYPHS.warned)
            return
        if not is_read_only(tool.annotations):
            question = HandExecutionScreen(tool, arguments, self._secrets)
            if await self.stage.ask(question) != "yes":
                self.announce("Not called", "text", GLYPHS.stopped)
                return
        serving = await self._runner.open_serving()
        calling = self._calling = serving.call(self._server, grant, tool.name, arguments)
        self._sent = dict(arguments)
        self._show(CallOutcome(running=True))
        try:
            executed = await asyncio.wrap_future(calling)
            self._show(CallOutcome(executed=executed))
        except ServerError as error:
            self._show(CallOutcome(error=str(error), output=error.output))
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
            self._show_bars()

    @action("x", "Stop waiting for the answer", label="stop waiting", needs=_stop_waiting, changes=True)
    def do_stop(self) -> None:
        """Stop waiting for the answer."""
        if self._calling is not None:
            self._calling.cancel()

    @action("y", "Copy the answer, or the arguments", label="copy")
    def do_copy(self) -> None:
        """Copy the answer, otherwise the arguments."""
        executed = self._outcome.executed
        if executed is not None:
            text, what = executed.answer.content, "the answer"
        else:
            text, what = json.dumps(self._form.arguments, ensure_ascii=False, indent=2), "the arguments"
        self.stage.copy(text, what, self.announce)

    @action("l", "Log of the server, which follows it", label="log", changes=True)
    def do_log(self) -> None:
        """Show the log of the server."""
        self._show_log(self.announce)

    # Using the answer

    @action("M", "Make the call a mock of the case", label="use as mock", needs=_answered, changes=True)
    def do_mock(self) -> None:
        """Add the call and its answer as a mock to the selected case."""
        tool, executed = self._form.tool.name, self._outcome.executed
        if executed is not None:
            answer = executed.answer
            self._use(lambda case: case_with_mock(case, tool, self._sent, answer), f"Mock of {tool}")

    @action("C", "Make it an expected call of the case", label="expect it", needs=_answered, changes=True)
    def do_expect(self) -> None:
        """Add the call as an expected call to the selected case."""
        tool = self._form.tool.name
        self._use(lambda case: case_expecting(case, tool, self._sent), f"Expect {tool}")

    def _use(self, change: Callable[[Table], Table], done: str) -> None:
        suite_file = self._server.suite_file

        def without_secrets(case: Table) -> Table:
            return table_without_secrets(change(case), case, self._secrets)

        try:
            name = self._into_case(suite_file, without_secrets, done)
        except NotInCaseError:
            text = f"Put the cursor of the tree on a case of {suite_file.name}, then come back"
            self.announce(text, "warned", GLYPHS.warned)
        except (SpliceError, ValueError, IndexError) as error:
            self.announce(f"Nothing was changed: {error}", "warned", GLYPHS.warned)
        else:
            self.announce(
                f"{done}, in {name}; {key_for('edit.undo')} on the main screen takes it back", "passed", GLYPHS.passed
            )
