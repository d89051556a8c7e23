"""New suites: empty, or with the tools of a server; and what an empty folder offers."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import named_path, suite_name
from workbench.authoring.form.row_changes import new_suite
from workbench.authoring.open_suite import OpenSuite
from workbench.config.models import ConfigError
from workbench.engine.server_calls import ServerOf
from workbench.evaluation.client_servers import ClientConfigError, servers_on_machine
from workbench.evaluation.first_suite import SCHEMA_NAME, ServersToAsk, servers_to_ask
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.files import resolved
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.preview import PreviewScreen
from workbench.tui.tree.dialogs import BeginScreen, NewSuite, NewSuiteScreen
from workbench.tui.tree.from_server import Listed, ListingScreen, ServerScreen, first_suite_lines

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class NewSuites:
    """Makes suites, which are written when they are saved."""

    def __init__(self, app: Workbench) -> None:
        self._stage = app
        self._selection = app.selection
        self._open_suites = app.open_suites
        self._program = app.program

    def offer(self) -> None:
        """Ask how to begin in a folder without suites."""

        def take(answer: str | None) -> None:
            if answer == "samples":
                self._stage.services.reader.add_samples()
            elif answer is not None:
                self.ask(from_server=answer == "server")

        self._stage.show(BeginScreen(one_line(str(resolved(self._folder())))), take)

    def ask(self, *, from_server: bool = False) -> None:
        """Ask for the file of a new suite, and for its server where that is wanted."""

        def take(wanted: NewSuite | None) -> None:
            path = self.named(wanted.name) if wanted is not None else None
            if wanted is None or not isinstance(path, Path):
                return
            if wanted.from_server:
                self._stage.work(self._from_server(path), group="ask")
            else:
                self.make(path)

        self._stage.show(NewSuiteScreen(self.where, self.refusal, from_server=from_server), take)

    @property
    def where(self) -> str:
        """The question for the file of a new suite."""
        return f"The file, in {resolved(self._folder())}:"

    def named(self, text: str) -> Path | str:
        """Return the file of a new suite by what was typed, or why there can be none."""
        folder = self._folder()
        return named_path(folder, text, lambda path: self._why_not_new(folder, path))

    def refusal(self, text: str) -> str | None:
        """Return why there can be no suite of this name."""
        path = self.named(text)
        return path if isinstance(path, str) else None

    async def _from_server(self, path: Path) -> None:
        """Ask for a server, for consent and for its tools, and open a suite for them. Each question can be left."""
        home, text = self._program.environment.home, ""
        while True:
            question = ServerScreen(path.name, text, lambda: tuple(servers_on_machine(path.parent, home)))
            found = await self._stage.ask(question)
            if found is None:
                return
            names = [str(table["name"]) for table in found.tables]
            try:
                asked = await asyncio.to_thread(
                    servers_to_ask, found, suite_name(path), path, resolved(path.parent), self._program
                )
            except (ClientConfigError, ConfigError) as error:
                self._stage.announce(f"Nothing was made: {error}", "warned", GLYPHS.warned)
                return
            approval = await self._stage.services.starter.approval_of_servers(asked.file, asked.program)
            if isinstance(approval, str):
                self._stage.announce(approval, "warned", GLYPHS.warned)
                text = question.typed  # to be asked again, with what was typed
                continue
            suite, grant, serving = (
                asked.file.suite,
                approval.grants[path],
                await self._stage.services.runner.open_serving(),
            )
            assert suite is not None
            servers = [ServerOf(path, server) for server in suite.servers]
            listed = await self._stage.ask(
                ListingScreen(names, partial(serving.list_once, servers, grant, asked.program))
            )
            if listed is not None:
                await self._offer_first(asked, listed)
                return
            text = question.typed

    async def _offer_first(self, asked: ServersToAsk, listed: Listed) -> None:
        """Show the first suite for the tools of servers, and open it if it is wanted."""
        path = asked.file.path
        has_schema = (path.parent / SCHEMA_NAME).is_file()
        made = await asyncio.to_thread(asked.suite, suite_name(path), listed, schema=has_schema)
        if made.suite is None:
            why = "; ".join(map(str, made.errors))
            self._stage.announce(f"Nothing was made: what the server listed cannot be a suite: {why}", "error")
            return
        title = f"A first suite: {one_line(path.name)}"
        tools = sum(map(len, listed))
        if not await self._stage.ask(
            PreviewScreen(title, lambda width: first_suite_lines(asked, made, tools, width), "open it, unsaved")
        ):
            return
        if (why_not := self._why_not_new(self._folder(), path)) is not None:
            self._stage.announce(f"Nothing was made: {why_not}", "warned", GLYPHS.warned)
            return
        self._stage.services.tools_changed()
        suite = OpenSuite.new(path, made.text)
        self.add(suite)
        self._selection.select(path, suite.cases[0].key)
        self._stage.announce(
            f"New suite {one_line(path.name)}: write what the user asks, and remove skip; "
            f"{key_for('save')} saves it as {one_line(str(resolved(path)))}"
        )

    def make(self, path: Path) -> None:
        """Open a new suite at a path, and say where it will be saved."""
        self.add(OpenSuite.new(path, new_suite(suite_name(path))))
        where = one_line(str(resolved(path)))
        name = one_line(path.name)
        self._stage.announce(
            f"New suite {name}: {key_for('tree.new')} makes its first case, {key_for('save')} saves it as {where}"
        )

    def add(self, suite: OpenSuite) -> None:
        """Open a suite that is not on disk, and select it."""
        self._open_suites.add(suite)
        self._selection.select(suite.path)
        self._stage.main.go_to("suites")

    def _why_not_new(self, folder: Path, path: Path) -> str | None:
        if path.suffix != ".toml":
            return "a suite is a TOML file: end its name with .toml, or leave the ending out"
        if self._open_suites.at(path) is not None or path.exists():
            return f"{path.name} already exists"
        if not path.is_relative_to(folder) or ".." in path.relative_to(folder).parts:
            return f"a new suite must be in {resolved(folder)}, or in a folder below it"
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            return "hidden files and folders are skipped: remove the dot at the beginning"
        return None

    def _folder(self) -> Path:
        """Return the folder for a new suite: the selected one, or that of the selected suite."""
        row = self._selection.row
        roots = self._open_suites.workspace.roots
        if row is not None:
            folder = row.key.path if row.key.kind == "folder" else row.key.path.parent
        else:
            folder = next((root for root in roots if root.is_dir()), Path())
        return Path() if self._stage.services.is_bundled(folder / "suite.toml") else folder
