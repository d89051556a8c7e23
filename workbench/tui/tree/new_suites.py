"""Creates new suites, empty or with the tools of a server, and offers ways to begin in an empty folder."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.authoring.case_list import free_path, named_path, suite_name
from workbench.authoring.form.row_changes import new_suite
from workbench.authoring.open_suite import OpenSuite
from workbench.config.folders import bundled
from workbench.config.models import ConfigError
from workbench.engine.server_calls import SuiteServer
from workbench.evaluation.client_servers import (
    ClientConfigError,
    ConfiguredServer,
    FoundServers,
    server_of_text,
    servers_on_machine,
)
from workbench.evaluation.first_suite import SCHEMA_NAME, ServersToList, servers_to_list
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import toml_lines
from workbench.show.spans import EMPTY, Line, cut_line, with_margin
from workbench.show.visible import one_line
from workbench.suite.files import resolved
from workbench.suite.suite_file import SuiteFile
from workbench.tools.answer import ServerError, UntrustedError
from workbench.trajectory.events import ToolDefinition
from workbench.tui.kit.actions import Keymap, key_for
from workbench.tui.kit.dialogs import ChoiceList, Dialog, Option, PreviewScreen, TextView, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.questions import _ROWS_AROUND, QuestionScreen, Refusal, TextPromptScreen
from workbench.tui.kit.stage import in_background
from workbench.tui.tree.rows import RowKey

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


SUITE_KINDS: tuple[Option, ...] = (
    Option("empty", "tools are written into it, or added later"),
    Option("from a server", "its tools are those of an MCP server", "tools of an MCP server"),
)


_UNWRITABLE = '<>:"|?*\\'
"""Characters that some file systems refuse in names."""


class NewSuite(NamedTuple):
    """The file name typed for a new suite. With `from_server`, the next dialog asks for a server."""

    file: str
    from_server: bool


class NewSuiteScreen(TextPromptScreen[NewSuite]):
    """Asks for the file of a new suite, and whether to create it empty or with the tools of a server."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("up,down", "server", show=False)]

    def __init__(self, explanation: str, refusal: Refusal, *, proposed: str) -> None:
        keys = keys_line(("Enter", "create"), ("↓", "from a server"), ("Esc", "leave"))
        super().__init__("New suite", proposed, explanation, refusal, keys)

    def body(self) -> ComposeResult:
        yield from super().body()
        yield ChoiceList(SUITE_KINDS, widget_id="kinds")

    def action_server(self) -> None:
        """Close with the typed file and the choice of a suite with the tools of a server."""
        self.dismiss(NewSuite(self.query_one("#name", Input).value.strip(), from_server=True))

    def answer(self, text: str) -> None:
        self.dismiss(NewSuite(text, from_server=False))

    @on(ChoiceList.Chosen)
    def _chosen(self, event: ChoiceList.Chosen) -> None:
        if event.index == 1:
            self.action_server()
        else:
            self.submit()


class BeginScreen(QuestionScreen[Literal["new", "server", "samples", "no"]]):
    """Offers ways to begin in a folder without suites."""

    TITLE_LINE = "No suites here: begin with …"
    ANSWER_DELAY_S = 0.0

    def __init__(self, folder: str) -> None:
        text = (
            f"{folder} holds no suites. A suite is a TOML file of cases: what a user asks, and which calls you expect."
        )
        super().__init__(
            lambda width: [EMPTY, *with_margin(text, width), EMPTY],
            [
                ("new", Option("new suite", "an empty one, in this folder")),
                ("server", Option("from a server", "test the tools of an MCP server")),
                ("samples", Option("samples", "open the suites that come with the program", "open those")),
                ("no", Option("nothing yet", "")),
            ],
            leaving="leave",
            harmless=frozenset({"new", "server", "samples"}),
            default="new",
        )


class WhichSuiteScreen(Dialog[int]):
    """Asks for one of several suites, by index."""

    TITLE_LINE = "Move the case to"
    VERB: ClassVar[str] = "move"

    def __init__(self, suites: Sequence[Option]) -> None:
        super().__init__(keys_line(("Enter", self.VERB), ("Esc", "leave")))
        self._suites = suites

    def body(self) -> ComposeResult:
        yield ChoiceList(self._suites, widget_id="suites")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#suites"))

    def _make_room(self, height: int) -> None:
        self.query_one("#suites").styles.max_height = max(height - _ROWS_AROUND, 2)

    @on(ChoiceList.Chosen)
    def _chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(event.index)


class DeleteScreen(QuestionScreen[Literal["delete", "no"]]):
    """Asks before deleting a case or a suite's file.

    `effect` describes what happens to the file, in a long and in a short form."""

    def __init__(self, title: str, texts: Sequence[str], effect: tuple[str, str]) -> None:
        self.TITLE_LINE = title  # type: ignore[misc]

        def lines(width: int) -> list[Line]:
            rows = [EMPTY]
            for text in texts:
                rows += with_margin(text, width)
            return [*rows, EMPTY]

        super().__init__(
            lines,
            [
                ("delete", Option("delete", *effect)),
                ("no", Option("no", "leave it")),
            ],
            leaving="leave it",
            harmless=frozenset({"delete"}),
            default="delete",
        )


ListedTools = tuple[tuple[ToolDefinition, ...], ...]
"""The tools of each server."""

_TYPED = Option("as typed above")


class TypedServer(NamedTuple):
    """A typed server: command or URL, environment variables separated by blanks, folder, and suite file."""

    server: str = ""
    env: str = ""
    cwd: str = ""
    file: str = ""

    def found(self, folder: Path) -> FoundServers:
        """Return the typed server for a suite in `folder`.

        Raises ClientConfigError if no server is typed or its folder does not exist."""
        try:
            env = shlex.split(self.env)
        except ValueError as error:
            raise ClientConfigError(f"the variables cannot be read: {str(error).lower()}") from None
        if self.cwd and not (folder / Path(self.cwd).expanduser()).is_dir():
            raise ClientConfigError(f"there is no folder {self.cwd} in {folder}")
        return server_of_text(self.server, [text.rstrip(",") for text in env], self.cwd or None)


class ServerScreen(TextPromptScreen[FoundServers]):
    """Asks for a server: a command, a URL, or a server from the configuration of an MCP client (`find`).

    A command may have environment variables and a working folder, relative to the suite's `folder`. If no `file` is
    typed, the suite is named after the server."""

    DEFAULT_CSS = """
    ServerScreen Input { margin: 0 1; }
    ServerScreen #file { margin: 0 1 1 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "other(-1)", show=False),
        Binding("down", "other(1)", show=False),
    ]

    def __init__(
        self,
        folder: Path,
        proposed: TypedServer,
        find: Callable[[], Sequence[ConfiguredServer]],
        file_refusal: Refusal,
    ) -> None:
        self._file_refusal = file_refusal
        self._found: Sequence[ConfiguredServer] = ()
        self._find = find
        self._folder = folder
        self.typed = proposed
        """The proposed texts. After Enter, the typed texts."""
        self.is_typed = False
        """Whether the user typed the server. All other servers come from files."""
        super().__init__(
            "A suite for an MCP server",
            proposed.server,
            "Its command, as in a shell (uvx mcp-server-git), or its URL. Nothing starts without your consent.",
            self._why_not,
            keys_line(("Enter", "take it"), ("Tab", "its variables, its folder"), ("Esc", "leave")),
        )

    def body(self) -> ComposeResult:
        yield from super().body()
        variables = "variables: GITHUB_TOKEN for the one of your shell, LEVEL=debug"
        yield SafeInput(self.typed.env, variables, widget_id="env")
        yield SafeInput(self.typed.cwd, "folder of the command: the suite's", widget_id="cwd")
        yield SafeInput(self.typed.file, "file of the suite: named after the server", widget_id="file")
        yield ChoiceList((), widget_id="clients")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#clients").display = False
        self.run_worker(self._find_servers())

    async def _find_servers(self) -> None:
        # Reading the settings of all MCP clients may take long. Meanwhile, the user can type a command, and the list
        # appears later.
        self._found = await in_background(self._find)
        if not self._found or not self.is_mounted:
            return
        choices = self.query_one("#clients", ChoiceList)
        widest = min(max(len(one_line(each.name)) for each in self._found), 24)
        choices.options = [
            _TYPED,
            *(Option(f"{one_line(each.name):<{widest}}", _about(each)) for each in self._found),
        ]
        choices.display = True
        self._keys = keys_line(
            ("Enter", "take it"),
            ("↑↓", "servers of your MCP clients"),
            ("Tab", "variables, folder"),
            ("Esc", "leave"),
        )
        self.set_keys(self._keys)
        choices.refresh(layout=True)

    def _make_room(self, height: int) -> None:
        super()._make_room(height)
        self.query_one("#clients").styles.max_height = max(height - _ROWS_AROUND - 5, 2)

    @property
    def _chosen(self) -> ConfiguredServer | None:
        at = self.query_one("#clients", ChoiceList).cursor
        if at and self._found:
            return self._found[at - 1]
        return None

    def action_other(self, step: int) -> None:
        """Select the next (1) or previous (-1) server. The field keeps the focus."""
        if self._found:
            choices = self.query_one("#clients", ChoiceList)
            choices.move_cursor((choices.cursor + step) % len(choices.options))

    def submit(self) -> None:
        if self._chosen is None:
            super().submit()
            return
        self.typed = self._texts(self.query_one("#name", Input).value.strip())
        why = self._file_refusal(self.typed.file) if self.typed.file else None
        if why is None:
            self.dismiss(self._chosen.found)
        else:
            self.show_notice(why)

    def action_leave(self) -> None:
        self.typed = self._texts(self.query_one("#name", Input).value.strip())
        super().action_leave()

    def answer(self, text: str) -> None:
        self.typed, self.is_typed = self._texts(text), True
        self.dismiss(self.typed.found(self._folder))

    @on(Input.Changed)
    def _typed(self) -> None:
        # Enter uses the selected entry of the list. Typing selects the first entry, which stands for the typed server.
        if self._found:
            self.query_one("#clients", ChoiceList).move_cursor(0)

    @on(ChoiceList.Chosen)
    def _picked(self) -> None:
        self.submit()

    def _why_not(self, text: str) -> str | None:
        typed = self._texts(text)
        try:
            typed.found(self._folder)
        except ClientConfigError as error:
            return str(error)
        return self._file_refusal(typed.file) if typed.file else None

    def _texts(self, text: str) -> TypedServer:
        return TypedServer(text, *(self.query_one(f"#{name}", Input).value.strip() for name in ("env", "cwd", "file")))


def _about(server: ConfiguredServer) -> str:
    table = server.found.tables[0]
    command = table.get("command")
    if isinstance(command, list):
        return f"{server.client}: {one_line(' '.join(map(str, command)))}"
    return f"{server.client}: {one_line(str(table.get('url', '')))}"


class ListingScreen(Dialog[ListedTools]):
    """Requests the tools of servers by `ask`, shows a message until they answer, and closes with the tools.

    After an error, the dialog shows the error and the end of the server's output. Enter repeats the request."""

    HAS_SUBJECT: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "again", "Try again", show=False)]

    def __init__(self, names: Sequence[str], ask: Callable[[], Future[ListedTools]]) -> None:
        super().__init__(keys_line(("Esc", "cancel")))
        self.TITLE_LINE = f"Asking {one_line(', '.join(names))} for its tools"  # type: ignore[misc]
        self._names = names
        self._ask = ask
        self._listing: Future[ListedTools] | None = None
        self._began_s = 0.0
        self._error: ServerError | UntrustedError | None = None

    def body(self) -> ComposeResult:
        yield TextView(self._lines, "reading")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#reading"))
        self.set_interval(1, self._update_times)
        self.action_again()

    def on_unmount(self) -> None:
        if self._listing is not None:
            self._listing.cancel()

    def action_again(self) -> None:
        """Request the tools of the servers, unless a request is in progress."""
        if self._listing is None or self._error is not None:
            self._error, self._began_s = None, time.monotonic()
            self.set_keys(keys_line(("Esc", "cancel")))
            self._listing = self._ask()
            self._show()
            self.run_worker(self._wait(self._listing), group="ask")

    async def _wait(self, future: Future[ListedTools]) -> None:
        try:
            listed = await asyncio.wrap_future(future)
        except (ServerError, UntrustedError) as error:
            self._failed(error)
        else:
            if any(listed):
                self.dismiss(listed)
            else:
                self._failed(ServerError(f"{', '.join(self._names)} started, and lists no tools"))

    def _failed(self, error: ServerError | UntrustedError) -> None:
        self._error = error
        self.set_keys(keys_line(("Enter", "try again"), ("Esc", "another server")))
        self._show()

    def _update_times(self) -> None:
        if self._error is None:
            self._show()

    def _show(self) -> None:
        self.query_one("#reading", TextView).rebuild_lines(from_top=False)
        self.query_one("#reading").refresh(layout=True)

    def _lines(self, width: int) -> list[Line]:
        if self._error is None:
            passed = int(time.monotonic() - self._began_s)
            took = f" {passed} s" if passed else ""
            return [EMPTY, *with_margin(f"{GLYPHS.running} It starts and lists its tools{took}", width), EMPTY]
        lines = [EMPTY, *with_margin(f"{GLYPHS.error} {self._error}", width, "error")]
        if isinstance(self._error, ServerError) and self._error.output is not None and self._error.output.lines:
            lines += [EMPTY, *with_margin("The end of its output:", width, "muted")]
            for text in self._error.output.lines:
                lines += with_margin(one_line(text), width)
        return [*lines, EMPTY]


def first_suite_lines(
    request: ServersToList, suite_file: SuiteFile, tools: Sequence[str], keymap: Keymap, width: int
) -> list[Line]:
    """Describe the suite that would be created for a server."""
    assert suite_file.suite is not None
    listed = f"{counted(len(tools), 'tool')}: {one_line(', '.join(tools))}."
    case = f"No case yet: {key_for('tree.new')} in the suite takes a request, and its calls become a case."
    lines = [EMPTY, *with_margin(listed, width), *with_margin(keymap.in_words(case), width)]
    for note in request.found.notes:
        lines += with_margin(f"{GLYPHS.warned} {note}", width, "warned")
    if request.missing:
        them = ", ".join(request.missing)
        lines += with_margin(f"Set before it runs, in the environment or in a .env beside it: {them}", width, "warned")
    lines.append(EMPTY)
    return [*lines, *(cut_line(line, width) for line in toml_lines(suite_file.text.rstrip("\n").split("\n"))), EMPTY]


class NewSuites:
    """Creates and opens suites. Their files are written when the user saves."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._open_suites = app.open_suites
        self._program = app.program
        self._typed = TypedServer()
        """The typed texts of a server dialog that the user left before a suite was made."""

    def offer(self) -> None:
        """Ask how to begin in a folder without suites."""

        def on_answer(answer: str | None) -> None:
            if answer == "samples":
                self._app.services.reader.add_samples()
            elif answer == "server":
                self._ask_server(self._typed)
            elif answer == "new":
                self.ask()

        self._app.show(BeginScreen(one_line(str(resolved(self._folder())))), on_answer)

    def ask(self, *, proposed: str = "") -> None:
        """Ask for the file of a new suite or for a server, and create the suite."""

        def on_answer(new_suite: NewSuite | None) -> None:
            if new_suite is None:
                return
            if new_suite.from_server:
                self._ask_server(self._typed._replace(file=new_suite.file or self._typed.file))
                return
            path = self.named(new_suite.file)
            if isinstance(path, Path):
                self.make(path)

        self._app.show(NewSuiteScreen(self.where, self.refusal, proposed=proposed), on_answer)

    def _ask_server(self, typed: TypedServer) -> None:
        self._app.work(self._from_server(typed), group="ask")

    @property
    def where(self) -> str:
        """The question that asks for the file of a new suite."""
        return f"The file, in {resolved(self._folder())}:"

    def named(self, text: str) -> Path | str:
        """Return the path of a new suite for the typed name, or why the suite cannot be made."""
        folder = self._folder()
        return named_path(folder, text, lambda path: self._why_not_new(folder, path))

    def refusal(self, text: str) -> str | None:
        """Return why a new suite cannot have this name, `None` if it can."""
        path = self.named(text)
        if isinstance(path, str):
            return path
        return None

    async def _from_server(self, typed: TypedServer) -> None:
        # If the user refuses trust or a server does not answer, the dialog for the server opens again. If the user
        # leaves that dialog, the dialog for the suite opens again.
        home, parent = self._program.environment.home, self._folder()
        folder = resolved(parent)
        while True:
            question = ServerScreen(folder, typed, lambda: tuple(servers_on_machine(parent, home)), self.refusal)
            found = await self._app.ask(question)
            self._typed = question.typed
            if found is None:
                self.ask(proposed=question.typed.file)
                return
            path = self._path_for(found, question.typed.file)
            names = [str(table["name"]) for table in found.tables]
            try:
                asked = await asyncio.to_thread(servers_to_list, found, suite_name(path), path, folder, self._program)
            except (ClientConfigError, ConfigError) as error:
                self._app.announce(f"Nothing was made: {error}", "warned", GLYPHS.warned)
                return
            starter = self._app.services.starter
            approval = await starter.approval_of_servers(asked.file, asked.program, typed=question.is_typed)
            if isinstance(approval, str):
                self._app.announce(approval, "warned", GLYPHS.warned)
                typed = question.typed
                continue
            suite, grant, serving = (
                asked.file.suite,
                approval.grants[path],
                await self._app.services.runner.open_serving(),
            )
            assert suite is not None
            servers = [SuiteServer(path, server) for server in suite.servers]
            listed = await self._app.ask(
                ListingScreen(names, partial(serving.list_once, servers, grant, asked.program))
            )
            if listed is not None:
                self._typed = TypedServer()
                await self._offer_first(asked, listed)
                return
            typed = question.typed

    def _path_for(self, found: FoundServers, typed: str) -> Path:
        path = self.named(typed) if typed else None
        if isinstance(path, Path):
            return path
        name = re.sub(r"[^\w.-]+", "-", str(found.tables[0]["name"])).strip(".-") or "server"
        return free_path(self._folder() / f"{name}.toml", (suite.path for suite in self._open_suites.suites))

    async def _offer_first(self, request: ServersToList, listed: ListedTools) -> None:
        path = request.file.path
        # The first line of a suite may name a schema in the same folder, so editors can complete the suite.
        has_schema = (path.parent / SCHEMA_NAME).is_file()
        # The suite has no cases yet, because cases for all tools would hide the first case that the user adds.
        made = await asyncio.to_thread(request.suite, suite_name(path), listed, (), schema=has_schema)
        if made.suite is None:
            why = "; ".join(map(str, made.errors))
            self._app.announce(f"Nothing was made: what the server listed cannot be a suite: {why}", "error")
            return
        title = f"A first suite: {one_line(path.name)}"
        tools = [tool.name for tools_of_server in listed for tool in tools_of_server]

        def lines(width: int) -> list[Line]:
            return first_suite_lines(request, made, tools, self._app.keymap, width)

        if not await self._app.ask(PreviewScreen(title, lines, "open it, unsaved")):
            return
        # Another program may have written the file meanwhile.
        if (why_not := self._why_not_new(self._folder(), path)) is not None:
            self._app.announce(f"Nothing was made: {why_not}", "warned", GLYPHS.warned)
            return
        self._app.services.tools_changed()
        self._open(path, made.text)

    def make(self, path: Path) -> None:
        """Open an empty suite at a path."""
        self._open(path, new_suite(suite_name(path)))

    def _open(self, path: Path, text: str) -> None:
        self.add(OpenSuite.new(path, text))
        path_text = one_line(str(resolved(path)))
        name = one_line(path.name)
        self._app.announce(
            f"New suite {name}: {key_for('tree.new')} makes its first case, {key_for('save')} saves it as {path_text}"
        )

    def add(self, suite: OpenSuite, *, folded: bool = False) -> None:
        """Open and select a suite that is not on disk. Fold the bundled samples to make room for it in the tree.

        With `folded`, the cases of the suite are folded too."""
        self._open_suites.add(suite)
        tree = self._selection.tree
        keys = {*tree.folded, RowKey("folder", bundled("sample_suites"))}
        if folded:
            keys.add(RowKey("suite", suite.path))
        tree.fold_only(keys)
        self._selection.select(suite.path)
        self._app.main.go_to("suites")

    def _why_not_new(self, folder: Path, path: Path) -> str | None:
        if path.suffix != ".toml":
            return "a suite is a TOML file: end its name with .toml, or leave the ending out"
        if self._open_suites.at(path) is not None or path.exists():
            return f"{path.name} already exists"
        if signs := [sign for sign in _UNWRITABLE if sign in path.name or sign in path.parent.name]:
            return f"a file name cannot hold {' '.join(signs)} everywhere: use letters, digits, - and _"
        # `is_relative_to` compares only the texts of paths, and would accept `suites/../../x.toml` as a path below
        # `suites`.
        if not path.is_relative_to(folder) or ".." in path.relative_to(folder).parts:
            return f"a new suite must be in {resolved(folder)}, or in a folder below it"
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            return "hidden files and folders are skipped: remove the dot at the beginning"
        return None

    def _folder(self) -> Path:
        row = self._selection.row
        if row is None:
            folder = next((root for root in self._open_suites.workspace.roots if root.is_dir()), Path())
        elif row.key.kind == "folder":
            folder = row.key.path
        else:
            folder = row.key.path.parent
        # The samples are part of the installed program, so the user's suites go to the working directory.
        if self._app.services.is_bundled(folder / "suite.toml"):
            return Path()
        return folder
