"""Suites as files of tests: one test for each case with each model, and one for the suite's gates."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import workbench
from workbench.api.suites import holds_packages
from workbench.numerals import cost_text, counted, mean_text, rate_text
from workbench.pytest_plugin.batch import Batch, Desk, RemoteBatch, SuiteTest, Verdict, tests_of
from workbench.pytest_plugin.settings import Settings


class SuiteFile(pytest.File):
    """A suite."""

    def collect(self) -> Iterator[SuiteItem]:
        """Its tests. A suite with errors is an error of the collection that names each with its line."""
        try:
            suite = workbench.load(self.path)
        except workbench.SuiteError as error:
            raise self.CollectError(str(error)) from error
        plugin = self.config.pluginmanager.get_plugin("workbench-suites")
        assert isinstance(plugin, Suites)
        for name, test in tests_of(suite, plugin.settings.models):
            # Said in full: pytest would not take the model of `name[model]` for a parameter, as it does in `--lf`.
            yield SuiteItem.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}", test=test, plugin=plugin)


class SuiteItem(pytest.Item):
    """A case with a model, or the gates of a suite."""

    def __init__(self, *, test: SuiteTest, plugin: Suites, **rest: Any) -> None:
        super().__init__(**rest)
        self.test = test
        self._plugin = plugin
        self.verdict: Verdict | None = None
        if test.cell is not None:
            case = test.cell.case
            # Words, not marks: pytest refuses marks that nobody has registered.
            self.extra_keyword_matches.update((*case.tags, case.name, test.cell.model))
            if case.definition.skip is not None:
                self.add_marker(pytest.mark.skip(reason=case.definition.skip))

    def setup(self) -> None:
        """Wait for the verdict. What the infrastructure is to blame for is no failure of the test, but an error."""
        self.verdict = verdict = self._plugin.verdict(self.nodeid)
        self.user_properties.extend(verdict.properties)
        if verdict.outcome == "error":
            match self._plugin.settings.errors:
                case "error":
                    raise pytest.fail.Exception(verdict.text, pytrace=False)
                case "skip":
                    pytest.skip(_first_line(verdict.text))

    def runtest(self) -> None:
        """Say what the verdict is."""
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
        """The place of the case in its file; lines count from 0 here."""
        line = self.test.cell.case.line - 1 if self.test.cell is not None else None
        return self.path, line, self.name


class Suites:
    """The plugin that collects suites and runs their tests as one batch."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = Settings.of(config)
        self._root = config.rootpath
        self._items: Sequence[pytest.Item] = ()
        self._not_searched: set[Path] = set()
        self._batch: Batch | None = None
        self._desk: Desk | None = None
        self._why_failed: str | None = None
        worker = getattr(config, "workerinput", None)
        self._remote = RemoteBatch(worker["workbench_desk"]) if worker is not None else None

    def verdict(self, node: str) -> Verdict:
        """Wait for the verdict on a test."""
        if self._remote is not None:
            return self._remote.verdict(node)
        if self._batch is None:
            chosen = (item for item in self._items if isinstance(item, SuiteItem))
            self._batch = Batch(self.settings, {item.nodeid: item.test for item in chosen if self._is_run(item)})
        return self._batch.verdict(node)

    def _is_run(self, item: SuiteItem) -> bool:
        """Return whether a test is part of the batch. A case that its suite skips is one where there is a baseline, in
        which it may have passed."""
        of_suite = item.test.cell is not None and item.test.cell.case.definition.skip is not None
        return item.get_closest_marker("skip") is None or (of_suite and self.settings.baseline is not None)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
        """Collect suites; other TOML files are not ours, and neither are suites of installed packages."""
        if file_path.suffix != ".toml" or not workbench.is_suite(file_path):
            return None
        if not parent.session.isinitpath(file_path) and (installed := _installed_around(file_path, parent.session)):
            self._not_searched.add(installed)
            return None
        # pytest has no path for what is outside of its root; workers name suites by it.
        node = os.path.relpath(file_path, self._root).replace(os.sep, "/")
        return SuiteFile.from_parent(parent, path=file_path, nodeid=node)

    def pytest_report_collectionfinish(self) -> str | None:
        """Say how many folders of installed packages have suites that were not collected."""
        folders = sorted(os.path.relpath(folder, self._root) for folder in self._not_searched)
        return f"workbench: suites of installed packages not collected: {', '.join(folders)}" if folders else None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember what is left after all selection."""
        self._items = session.items
        if self._remote is None:
            chosen = (item.test.suite for item in session.items if isinstance(item, SuiteItem))
            self.settings.refuse_unknown_models(chosen)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give a test the time of its own runs, not that of waiting for them."""
        report = yield
        if isinstance(item, SuiteItem) and item.verdict is not None:
            ends_here = call.when == "call" or (call.when == "setup" and not report.passed)
            report.duration = item.verdict.seconds if ends_here else 0.0
        return report

    def _nothing_graded(self, session: pytest.Session) -> str | None:
        """Return that suites were tested and no run that counts was graded, in a sentence."""
        if self._remote is not None or session.config.option.collectonly:
            return None
        if self._batch is not None:
            return self._batch.nothing_graded
        skipped = sum(isinstance(item, SuiteItem) for item in self._items)
        return f"no run that counts was graded: {skipped} skipped" if skipped else None

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist waits for workers that wait for verdicts
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what nobody waits for any more, as after `-x`. A report that could not be written is no success."""
        if self._batch is not None:
            self._batch.stop()
            if self._batch.unwritten and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if session.exitstatus == pytest.ExitCode.OK and (why := self._nothing_graded(session)) is not None:
            self._why_failed = why
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._batch is not None and self._batch.regression is not None:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        if self._desk is not None:
            self._desk.close()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the batch came to, a line for each model, and where it is stored."""
        if self._why_failed is not None:
            terminalreporter.section("workbench: nothing graded", red=True)
            terminalreporter.line(f"{self._why_failed}; the session fails, because that is no success")
        batch = self._batch
        if batch is None or (batch.report is None and not batch.unwritten):
            return
        report = batch.report
        terminalreporter.section("workbench")
        for model, totals in report.totals_per_model.items() if report is not None else ():
            rate = f"pass rate {rate_text(totals.pass_rate)} of {counted(totals.graded, 'graded run')}"
            cost = f", {cost_text(totals.cost_usd)}" if totals.cost_usd else ""
            terminalreporter.line(f"{model}: {rate}, mean score {mean_text(totals.mean_score)}{cost}")
        if report is not None and report.against is not None:
            terminalreporter.line(report.secrets.redact(report.against.verdict))
        if report is not None and report.recorded_as is not None:
            terminalreporter.line(report.recorded_as)
        for file in self.settings.reports:
            why = batch.unwritten.get(file)
            terminalreporter.line(f"report in {file}" if why is None else f"no report in {file}: {why}")

    # With pytest-xdist, in the controller: workers collect, and say what they have found.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to ask for verdicts."""
        if self._desk is None:
            self._desk = Desk()
        node.workerinput["workbench_desk"] = self._desk.address

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Plan the batch of the tests that were selected: every worker has the same."""
        if self._batch is None and self._desk is not None:
            tests = self._tests(ids)
            self.settings.refuse_unknown_models(test.suite for test in tests.values())
            self._batch = Batch(self.settings, tests)
            self._desk.open(self._batch)

    def _tests(self, ids: Sequence[str]) -> dict[str, SuiteTest]:
        tests: dict[str, SuiteTest] = {}
        files = dict.fromkeys(node.partition("::")[0] for node in ids)
        for file in files:
            path = self._root / file
            if path.suffix == ".toml" and workbench.is_suite(path):
                for name, test in tests_of(workbench.load(path), self.settings.models):
                    tests[f"{file}::{name}"] = test
        return {node: tests[node] for node in ids if node in tests}


def _installed_around(file: Path, session: pytest.Session) -> Path | None:
    """Return the folder of installed packages that a file is in, if it is below what pytest was given."""
    for folder in file.parents:
        if session.isinitpath(folder):
            return None
        if holds_packages(folder):
            return folder
    return None


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
