"""Suites as test files of pytest: a test for each case with each model, and one for the suite's gates."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

import workbench
from workbench.api.suites import holds_packages
from workbench.dataclasses import dataclass
from workbench.integrations.pytest_plugin.fixtures import Settings
from workbench.numerals import setting_text
from workbench.show.spans import plain
from workbench.show.views.gates import aggregate_demands, gate_demands

# All suite tests of a session share one evaluation. It begins with the first test, and gives each test its verdict as
# soon as the test's runs end. With pytest-xdist, the evaluation is in the controller, and the workers request verdicts.
# Even with several workers, one process writes the history and the reports, each server starts once, and each endpoint
# has one limit.

GATE = "gate"
"""The name of the test for a suite's gates and aggregates."""

STOP_TIMEOUT_S = 20.0
"""The longest wait for runs to stop at the end of a session, in seconds."""


class SuiteTest(NamedTuple):
    """A test of a suite: a test of one cell, or of the suite's gates if `cell` is `None`."""

    suite: workbench.LoadedSuite
    cell: workbench.Cell | None


Outcome = Literal["passed", "failed", "error", "skipped", "quarantined", "gated", "no regression"]


@dataclass(frozen=True)
class Verdict:
    """The result of a test. `text` is the report on its runs, or the reason for a missing report."""

    outcome: Outcome
    text: str = ""
    seconds: float = 0.0
    """The duration of the test's own runs in seconds, without waits for other runs."""
    properties: tuple[tuple[str, str], ...] = ()
    """The score, tokens and other figures, for the `user_properties` of pytest's reports."""


def tests_of(suite: workbench.LoadedSuite, models: tuple[str, ...]) -> Iterator[tuple[str, SuiteTest]]:
    """Yield the named tests of a suite in the order of the file. The test of the gates comes last."""
    for cell in suite.cells(models):
        yield f"{cell.case.id}[{cell.model}]", SuiteTest(suite, cell)
    if has_gates(suite):
        yield GATE, SuiteTest(suite, None)


def has_gates(suite: workbench.LoadedSuite) -> bool:
    """Return whether the suite has gates on all its runs together, or aggregates with limits."""
    gate = suite.definition.gate
    if gate.min_score is not None or gate.min_pass_rate is not None:
        return True
    for aggregate in suite.definition.aggregates:
        for demands in (aggregate.at_least, aggregate.above, aggregate.at_most):
            if any(value is not None for value in vars(demands).values()):
                return True
    return False


class Batch:
    """The evaluation of a session's suite tests, on its own thread. The first `verdict` starts it."""

    def __init__(self, settings: Settings, tests: Mapping[str, SuiteTest]) -> None:
        self._settings = settings
        self._tests = tests
        self._verdicts: dict[str, Future[Verdict]] = {test: Future() for test in tests}
        self._ids = {test.cell.key: node for node, test in tests.items() if test.cell is not None}
        self._gated: set[Path] = set()
        """The suites whose gates decide instead of their cases. The tests for these gates must be selected too."""
        for test in tests.values():
            if test.cell is None and test.suite.decides_together:
                self._gated.add(test.suite.path.absolute())
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._work: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failed: dict[str, tuple[Verdict, workbench.RunResult]] = {}
        """The verdicts on cases that failed, until the comparison with the baseline decides them."""
        self.report: workbench.Report | None = None
        """The report on all runs, or `None` until they have finished."""
        self.unwritten: dict[Path, str] = {}
        """The report files that were not written, each with the reason. It is empty before the batch begins."""

    def verdict(self, node: str) -> Verdict:
        """Wait for the verdict on a test."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="workbench", daemon=True)
                self._thread.start()
        return self._verdicts[node].result()

    @property
    def nothing_graded(self) -> str | None:
        """The message that no counted run was graded, or `None` if a counted run was graded."""
        if not self._tests:
            return None
        if self.report is None:
            return "no run that counts was graded: no case was run"
        if self._settings.errors == "skip" and self.report.totals.errors:
            return None
        return self.report.nothing_graded

    @property
    def regression(self) -> str | None:
        """The sentence on a regression since the baseline, or `None` if there is none."""
        if self.report is None or self.report.against is None:
            return None
        against = self.report.against
        return against.verdict if against.failed else None

    def stop(self) -> None:
        """Stop the unfinished runs, and wait until the finished runs are stored."""
        with self._lock:
            thread = self._thread
        if thread is None:
            return
        if not all(verdict.done() for verdict in self._verdicts.values()) and self._loop and self._work:
            self._loop.call_soon_threadsafe(self._work.cancel)
        thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        why = "stopped before it was over"
        self.unwritten = dict.fromkeys(self._settings.reports, f"the batch was {why}")
        try:
            asyncio.run(self._evaluate())
        except asyncio.CancelledError:
            pass
        except (workbench.WorkbenchError, OSError) as error:
            why = str(error)
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"
            raise
        finally:
            # Even after an error, every test must get a verdict, because a test without a verdict would wait for ever.
            self._settle_tests(self._tests, Verdict("error", why))

    async def _evaluate(self) -> None:
        self._loop, self._work = asyncio.get_running_loop(), asyncio.current_task()
        suites = {str(test.suite.path): test.suite for test in self._tests.values()}
        # A suite without approval is an error only of its own tests. The other suites are evaluated.
        while suites:
            cells = []
            for test in self._tests.values():
                if test.cell and str(test.suite.path) in suites:
                    cells.append(test.cell)
            if not cells:
                break
            try:
                self.report = await workbench.evaluate_async(
                    suites.values(),
                    models=self._settings.models,
                    cells=cells,
                    on_cell=self._on_event,
                    **self._settings.options,
                )
                break
            except workbench.ApprovalError as error:
                refused = []
                for node, test in self._tests.items():
                    if str(test.suite.path) in error.suites:
                        refused.append(node)
                self._settle_tests(refused, Verdict("error", f"{error.refused}\nAllow it with --workbench-trust"))
                for path in error.suites:
                    del suites[path]
        if (report := self.report) is not None:
            for node, (verdict, run) in self._failed.items():
                self._settle_tests([node], _since_baseline(report, verdict, run))
        for node, test in self._tests.items():
            if test.cell is None and str(test.suite.path) in suites:
                self._settle_tests([node], _of_gates(self.report, test.suite.path))
        for file in self._settings.reports:
            if self.report is None:
                self.unwritten[file] = "nothing was run"
                continue
            try:
                self.report.write(file)
                del self.unwritten[file]
            except OSError as error:
                self.unwritten[file] = error.strerror or str(error)

    def _on_event(self, event: workbench.CellDone) -> None:
        node = self._ids[event.suite, event.case, event.model]
        verdict = _of_cell(event)
        if verdict.outcome == "failed" and self._settings.baseline is not None:
            self._failed[node] = verdict, event.report.results[0]
            return
        if verdict.outcome == "failed" and event.suite in self._gated:
            verdict = replace(verdict, outcome="gated")
        self._settle_tests([node], verdict)

    def _settle_tests(self, nodes: Iterable[str], verdict: Verdict) -> None:
        for node in nodes:
            if not self._verdicts[node].done():
                self._verdicts[node].set_result(verdict)


def _properties(event: workbench.CellDone) -> tuple[tuple[str, str], ...]:
    totals = event.report.totals
    case = event.report.cases[0]
    properties = {"model": event.model, "status": case.status.value}
    if case.score is not None:
        properties["score"] = setting_text(case.score)
    properties["runs"] = str(len(case.runs))
    if (grader := case.runs[0].grader) is not None:
        properties["grader"] = grader
    if totals.usage is not None:
        properties["input_tokens"] = str(totals.usage.input_tokens)
        properties["output_tokens"] = str(totals.usage.output_tokens)
    if totals.cost_usd is not None:
        properties["cost_usd"] = setting_text(totals.cost_usd)
    return tuple(properties.items())


def _of_cell(event: workbench.CellDone) -> Verdict:
    report = event.report
    case = report.cases[0]
    seconds = sum(run.trajectory.duration_ms for run in case.runs) / 1000
    properties = _properties(event)
    if case.status.good:
        return Verdict("passed", seconds=seconds, properties=properties)
    if not case.status.owed:
        return Verdict("skipped", report.secrets.redact(case.reason or case.status.word), properties=properties)
    if not case.status.graded:
        return Verdict("error", report.failure_text(), seconds, properties)
    outcome: Outcome = "quarantined" if case.runs[0].grading.quarantined else "failed"
    return Verdict(outcome, report.failure_text(), seconds, properties)


def _since_baseline(report: workbench.Report, verdict: Verdict, run: workbench.RunResult) -> Verdict:
    """Return the verdict on a failed case.

    The test fails only if the case has certainly broken since the baseline."""
    against = report.against
    assert against is not None
    sentence = against.sentence_of(run)
    if against.surely_broke(run):
        return replace(verdict, text=f"{sentence}\n{verdict.text}")
    why = sentence or "no regression: the case did not pass in the baseline either"
    return replace(verdict, outcome="no regression", text=why)


def _of_gates(report: workbench.Report | None, suite: Path) -> Verdict:
    if report is None:
        return Verdict("skipped", "none of the suite's cases was run")
    gates = (gate for gate in report.gates if gate.suite == str(suite))
    aggregates = (each for each in report.aggregates if each.suite == str(suite) and each.gates)
    names = {str(suite): suite.stem}
    asked = [*gate_demands(gates, names, with_model=True), *aggregate_demands(aggregates, names, with_model=True)]
    lines: list[str] = []
    for demand in asked:
        lines += map(plain, demand.lines)
    all_met = all(demand.met for demand in asked)
    return Verdict("passed" if all_met else "failed", "\n".join(lines))


# A verdict may come hours after its request, and pytest-xdist has no channel for requests of workers. The controller
# therefore listens on a local socket, and each worker waits on its own connection. Messages are pickled, and a pickle
# can run code, so a token keeps out other programs of the machine.
class VerdictServer:
    """The controller's end of the connections to pytest-xdist's workers. It answers their requests for verdicts."""

    def __init__(self) -> None:
        self._token = secrets.token_bytes(32)
        self._listener = Listener(authkey=self._token)
        self._batch: Batch | None = None
        self._known = threading.Event()
        threading.Thread(target=self._accept, name="workbench verdicts", daemon=True).start()

    @property
    def address(self) -> tuple[str, bytes]:
        """The address of the socket, and the token that a `RemoteBatch` needs to connect."""
        return str(self._listener.address), self._token

    def open(self, batch: Batch) -> None:
        """Answer requests with the verdicts of a batch. Requests that came earlier are answered now."""
        self._batch = batch
        self._known.set()

    def close(self) -> None:
        """Close the socket."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                # The other end is a program without the token, or a worker that has already ended.
                continue
            except OSError:
                # The socket was closed.
                return
            threading.Thread(target=self._answer, args=(connection,), name="workbench verdicts", daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        self._known.wait()
        assert self._batch is not None
        # EOFError and OSError mean that the worker has ended. Any other error also closes the connection, so that the
        # worker does not wait in vain.
        with connection, suppress(EOFError, OSError):
            while True:
                connection.send(self._batch.verdict(connection.recv()))


class RemoteBatch:
    """A worker's end of the connection. It gets verdicts from the controller's batch."""

    def __init__(self, address: tuple[str, bytes]) -> None:
        self._address, self._token = address
        self._connection: Connection | None = None

    def verdict(self, node: str) -> Verdict:
        """Wait for the verdict on a test."""
        try:
            # The connection is made for the first verdict, because a controller that refuses its options ends before
            # its workers begin.
            if self._connection is None:
                self._connection = Client(self._address, authkey=self._token)
            self._connection.send(node)
            verdict: Verdict = self._connection.recv()
        except (EOFError, OSError):
            return Verdict("error", "the process that runs the batch has ended")
        return verdict


class SuiteFile(pytest.File):
    """A suite file as a test file."""

    def collect(self) -> Iterator[SuiteItem]:
        """Yield the tests of the suite. Raise CollectError, with all errors and their lines, for a broken suite."""
        try:
            suite = workbench.load(self.path)
        except workbench.SuiteError as error:
            raise self.CollectError(str(error)) from error
        plugin = self.config.pluginmanager.get_plugin("workbench-suites")
        assert isinstance(plugin, Suites)
        for name, test in tests_of(suite, plugin.settings.models):
            # The complete node id is given, because pytest would not recognize the model in `name[model]` as a
            # parameter.
            yield SuiteItem.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}", test=test, plugin=plugin)


class SuiteItem(pytest.Item):
    """A test: a case with a model, or the gates of a suite."""

    def __init__(self, *, test: SuiteTest, plugin: Suites, **rest: Any) -> None:
        super().__init__(**rest)
        self.test = test
        self._plugin = plugin
        self.verdict: Verdict | None = None
        if test.cell is not None:
            case = test.cell.case
            # Tags become words for `-k` and not marks, because pytest warns of marks that are not registered.
            self.extra_keyword_matches.update((*case.tags, case.name, test.cell.model))
            if case.definition.skip is not None:
                self.add_marker(pytest.mark.skip(reason=case.definition.skip))

    def setup(self) -> None:
        """Wait for the verdict. Raise an error if the infrastructure failed."""
        # pytest reports an exception in the setup as an error of the test, and an exception in `runtest` as a failure.
        self.verdict = verdict = self._plugin.verdict(self.nodeid)
        self.user_properties.extend(verdict.properties)
        if verdict.outcome == "error":
            match self._plugin.settings.errors:
                case "error":
                    raise pytest.fail.Exception(verdict.text, pytrace=False)
                case "skip":
                    pytest.skip(_first_line(verdict.text))

    def runtest(self) -> None:
        """Raise the exception with which pytest reports the verdict."""
        verdict = self.verdict
        assert verdict is not None
        if verdict.outcome == "skipped":
            pytest.skip(verdict.text)
        if verdict.outcome == "quarantined":
            pytest.xfail("the case is in quarantine")
        if verdict.outcome == "gated":
            pytest.xfail("the gate of the suite decides")
        if verdict.outcome == "no regression":
            pytest.xfail(verdict.text)
        if verdict.outcome in ("failed", "error"):
            raise pytest.fail.Exception(verdict.text, pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file, the case's line in it (from 0, as pytest counts), and the name of the test."""
        line = None
        if self.test.cell is not None:
            line = self.test.cell.case.line - 1
        return self.path, line, self.name


class Suites:
    """The plugin that collects suites and runs their tests as one batch, in the controller or a worker."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = Settings.of(config)
        self._root = config.rootpath
        self._items: Sequence[pytest.Item] = ()
        self._not_searched: set[Path] = set()
        self._batch: Batch | None = None
        self._verdict_server: VerdictServer | None = None
        self._why_failed: str | None = None
        self._remote: RemoteBatch | None = None
        if (worker := getattr(config, "workerinput", None)) is not None:
            self._remote = RemoteBatch(worker["workbench_verdicts"])

    def verdict(self, node: str) -> Verdict:
        """Wait for the verdict on a test."""
        if self._remote is not None:
            return self._remote.verdict(node)
        if self._batch is None:
            tests = {}
            for item in self._items:
                if isinstance(item, SuiteItem) and self._is_run(item):
                    tests[item.nodeid] = item.test
            self._batch = Batch(self.settings, tests)
        return self._batch.verdict(node)

    def _is_run(self, item: SuiteItem) -> bool:
        if item.get_closest_marker("skip") is None:
            return True
        # With a baseline, a skipped case is included, because it may have passed in the baseline.
        of_suite = item.test.cell is not None and item.test.cell.case.definition.skip is not None
        return of_suite and self.settings.baseline is not None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
        """Collect a file that is a suite, unless it belongs to an installed package."""
        if file_path.suffix != ".toml" or not workbench.is_suite(file_path):
            return None
        if not parent.session.isinitpath(file_path) and (installed := _installed_around(file_path, parent.session)):
            self._not_searched.add(installed)
            return None
        # The controller finds suites by node id, and pytest makes no usable node id for a file outside its root.
        node = os.path.relpath(file_path, self._root).replace(os.sep, "/")
        return SuiteFile.from_parent(parent, path=file_path, nodeid=node)

    def pytest_report_collectionfinish(self) -> str | None:
        """Report the folders of installed packages whose suites were not collected."""
        folders = sorted(os.path.relpath(folder, self._root) for folder in self._not_searched)
        if folders:
            return f"workbench: suites of installed packages not collected: {', '.join(folders)}"
        return None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the selected tests, and refuse unknown models before anything runs."""
        self._items = session.items
        if self._remote is None:
            chosen = (item.test.suite for item in session.items if isinstance(item, SuiteItem))
            self.settings.refuse_unknown_models(chosen)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report the duration of a test's own runs, not the time spent waiting for them."""
        report = yield
        if isinstance(item, SuiteItem) and item.verdict is not None:
            ends_here = call.when == "call" or (call.when == "setup" and not report.passed)
            report.duration = item.verdict.seconds if ends_here else 0.0
        return report

    def _nothing_graded(self, session: pytest.Session) -> str | None:
        if self._remote is not None or session.config.option.collectonly:
            return None
        if self._batch is not None:
            return self._batch.nothing_graded
        skipped = sum(isinstance(item, SuiteItem) for item in self._items)
        if skipped:
            return f"no run that counts was graded: {skipped} skipped"
        return None

    # Runs are stopped before pytest-xdist waits for its workers, because the workers wait for verdicts.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop unfinished runs, for example after `-x`, and set the session's exit status.

        Even if all tests passed, a session fails if a report was not written, nothing was graded, or a case broke since
        the baseline."""
        if self._batch is not None:
            self._batch.stop()
            if self._batch.unwritten and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if session.exitstatus == pytest.ExitCode.OK and (why := self._nothing_graded(session)) is not None:
            self._why_failed = why
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._batch is not None and self._batch.regression is not None:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        if self._verdict_server is not None:
            self._verdict_server.close()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each model, the comparison with the baseline, and where the results are stored."""
        if self._why_failed is not None:
            terminalreporter.section("workbench: nothing graded", red=True)
            terminalreporter.line(f"{self._why_failed}, so the session fails")
        batch = self._batch
        if batch is None or (batch.report is None and not batch.unwritten):
            return
        terminalreporter.section("workbench")
        if batch.report is not None:
            for line in _summary(batch.report):
                terminalreporter.line(line)
        for file in self.settings.reports:
            if file in batch.unwritten:
                terminalreporter.line(f"no report in {file}: {batch.unwritten[file]}")
            else:
                terminalreporter.line(f"report in {file}")

    # The hooks of pytest-xdist, which are called in the controller. Workers collect tests and send their node ids to
    # the controller.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the address and the token for its verdicts."""
        if self._verdict_server is None:
            self._verdict_server = VerdictServer()
        node.workerinput["workbench_verdicts"] = self._verdict_server.address

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Prepare the batch from the selected tests, which are the same for every worker."""
        if self._batch is None and self._verdict_server is not None:
            tests = self._tests(ids)
            self.settings.refuse_unknown_models(test.suite for test in tests.values())
            self._batch = Batch(self.settings, tests)
            self._verdict_server.open(self._batch)

    def _tests(self, ids: Sequence[str]) -> dict[str, SuiteTest]:
        tests: dict[str, SuiteTest] = {}
        files = dict.fromkeys(node.partition("::")[0] for node in ids)
        for file in files:
            path = self._root / file
            if path.suffix == ".toml" and workbench.is_suite(path):
                for name, test in tests_of(workbench.load(path), self.settings.models):
                    tests[f"{file}::{name}"] = test
        return {node: tests[node] for node in ids if node in tests}


def _summary(report: workbench.Report) -> Iterator[str]:
    from workbench.show.views.totals import cost_fact, rate_fact, score_fact  # imported here: few sessions have suites

    for model, totals in report.totals_per_model.items():
        facts = filter(None, (rate_fact(totals), score_fact(totals), cost_fact(totals)))
        yield f"{model}: {', '.join(facts) or 'nothing was graded'}"
    if report.against is not None:
        yield report.secrets.redact(report.against.verdict)
    if report.recorded_as is not None:
        yield report.recorded_as


def _installed_around(file: Path, session: pytest.Session) -> Path | None:
    """Return the folder of installed packages around a file, unless pytest was given a folder inside it."""
    for folder in file.parents:
        if session.isinitpath(folder):
            return None
        if holds_packages(folder):
            return folder
    return None


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
