"""Connects every area of commands with what it needs. Imported on the first action, because it imports many modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.tui.accepting.accept import AcceptingCommands
from workbench.tui.accepting.capturing import CapturingCommands
from workbench.tui.audit.opening import AuditCommands
from workbench.tui.breakpoints.commands import BreakpointCommands
from workbench.tui.breakpoints.lines import breakpoint_in_run
from workbench.tui.case.commands import EditingCommands, FormCommands, TomlCommands
from workbench.tui.comparing.opening import CompareCommands
from workbench.tui.failures.opening import FailuresCommands
from workbench.tui.faults.opening import FaultsCommands
from workbench.tui.grades.opening import GradesCommands
from workbench.tui.history.opening import HistoryCommands
from workbench.tui.kit.actions import NO_EDITOR, NO_EDITOR_IN_BROWSER
from workbench.tui.kit.outside_editing import OutsideEditing
from workbench.tui.models.commands import ModelCommands
from workbench.tui.observing.opening import ObservingCommands
from workbench.tui.runs.commands import RunningCommands
from workbench.tui.saving.commands import SavingCommands
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.shell.program import ProgramCommands, ViewingCommands
from workbench.tui.shell.services import Services, Surface
from workbench.tui.stepping.commands import SteppingCommands
from workbench.tui.stepping.forking import ForkingCommands
from workbench.tui.tools.drafting import ToolDrafter
from workbench.tui.tools.opening import ToolsCommands
from workbench.tui.tools.servers import Known
from workbench.tui.trajectory.commands import RunPaneCommands
from workbench.tui.trajectory.opening import RunScreens
from workbench.tui.tree.changing import StructureCommands
from workbench.tui.tree.commands import TreeCommands
from workbench.tui.tree.new_suites import NewSuites
from workbench.tui.two_runs.opening import PairScreens
from workbench.tui.variants.commands import VariantCommands


class Areas:
    """The areas of an app. Each gets only the services it needs."""

    def __init__(
        self,
        app: Surface,
        main: MainScreen,
        services: Services,
        of_program: ProgramCommands,
        remember: Callable[[], object],
    ) -> None:
        selection, program, runner, starter = main.selection, services.program, services.runner, services.starter
        book, listings = selection.book, main.known_tools.listings
        case_pane, run_pane = main.case_pane, main.run_pane
        editor = OutsideEditing(
            app,
            services.terminal.editor,
            named=services.terminal.editor_is_named,
            missing=NO_EDITOR_IN_BROWSER if services.terminal.served else NO_EDITOR,
        )

        def tools_changed() -> None:
            main.known_tools.forget()
            main.auditor.forget()

        running = RunningCommands(app, selection, starter.run_soon, runner.stop, services.stop_all)
        models = ModelCommands(app, selection, program, services.trust, services.is_bundled, remember)
        breakpoints = BreakpointCommands(
            app,
            main,
            services.breakpoints,
            case_pane,
            in_run=lambda: breakpoint_in_run(*run_pane.run_list.at_cursor),
            key_name=app.key_name,
        )
        runs = RunScreens(app, book, services.run_saver.save_soon)
        pairs = PairScreens(app, selection, runs)
        self.comparing = CompareCommands(
            app,
            selection,
            runner,
            run_on=starter.run_on_soon,
            stop_all=services.stop_all,
            choose_models=models.choose_models,
            runs=runs,
            pairs=pairs,
            over_time=lambda *about: history.show_case(*about),
        )
        self.history = history = HistoryCommands(
            app,
            selection,
            services.history,
            runner,
            batch_work=lambda: services.batch_work,
            comparing=self.comparing,
            runs=runs,
            pairs=pairs,
            folders=program.folders,
            tell=services.over_main,
        )
        variants = VariantCommands(app, selection, starter.run_soon, self.comparing.methods["compare"])
        tools = ToolsCommands(
            app,
            selection,
            Known(runner, listings, book, program.secrets),
            approve_servers=starter.approval_of_servers,
            tools_changed=tools_changed,
            turn_breakpoint=breakpoints.turn_at_tool,
            drafter=ToolDrafter(app, selection, program, starter.approval_to_run),
            logs=program.folders.server_logs,
            vary=variants.of_tool,
        )
        capturing = CapturingCommands(app, selection, starter.run, program.secrets)
        faults = FaultsCommands(
            app,
            selection,
            main,
            plan=starter.plan,
            run_on=starter.run_on,
            run_forks=starter.run_forks,
            secrets=program.secrets,
        )
        services.runs_delivered = (capturing.delivered, faults.delivered)
        self._stepping = SteppingCommands(
            app, selection, main, run_pane, runner, starter.run_soon, starter.step_back, editor, program.secrets
        )
        self.new_suites = new_suites = NewSuites(
            app,
            selection,
            main,
            is_bundled=services.is_bundled,
            program=program,
            approve_servers=starter.approval_of_servers,
            open_serving=runner.open_serving,
            tools_changed=tools_changed,
            show_samples=services.reader.add_samples,
        )
        areas = (
            running,
            models,
            variants,
            self._stepping,
            breakpoints,
            RunPaneCommands(app, selection, main, run_pane, services.run_saver, open_last=history.open_last_run),
            ForkingCommands(app, selection, main, program, place=lambda: run_pane.run_list.place, fork=starter.fork),
            capturing,
            AcceptingCommands(app, selection, main, lambda: run_pane.run_list.item_and_before, program.secrets),
            TreeCommands(selection, main, main.suite_tree, main.filter_box, run_pane.search, new_suites.offer),
            new_suites,
            ObservingCommands(app, selection, program, new_suites),
            StructureCommands(
                app,
                selection,
                new_suites,
                main.known_tools,
                is_bundled=services.is_bundled,
                forget_draft=services.drafting.forget,
                deleted=program.folders.deleted,
                type_message=case_pane.type_message,
            ),
            EditingCommands(app, selection, main, case_pane, editor, services.reader.read_soon),
            FormCommands(lambda: case_pane.form, app.announce, lambda: self.methods["tree.new"]()),
            TomlCommands(app, selection, main, case_pane, editor),
            SavingCommands(app, selection, services.saver, services.reader, services.history_reader.read_again),
            ViewingCommands(app, main, services.searches.stop),
            of_program,
            tools,
            GradesCommands(app, selection, show_last=history.show_last_grades),
            FailuresCommands(app, selection, main),
            faults,
            AuditCommands(app, selection, listings),
            self.comparing,
            pairs,
            history,
        )
        self.methods: Mapping[str, Callable[[], object]] = {
            name: method for area in areas for name, method in area.methods.items()
        }
        """The handler of each action of the main screen, by id."""

    def perform(self, action_id: str) -> None:
        """Perform an action. Some keys have a different meaning while text for a held run is typed."""
        if not self._stepping.take(action_id):
            self.methods[action_id]()
