"""The settings of a pytest session for suites, and the functions of Workbench with these settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pytest

import workbench
from workbench.api.evaluate import models_in, unknown_models
from workbench.dataclasses import dataclass

Errors = Literal["error", "fail", "skip"]
"""The result of a test whose run ended as an error because a model or a server failed."""


@dataclass(frozen=True)
class Settings:
    """The settings for suites from pytest's command line and the project's configuration."""

    models: tuple[str, ...]
    repeats: int | None
    repeat_rule: str | None
    concurrency: int
    trust: bool
    execute: bool
    history: bool
    reports: tuple[Path, ...]
    errors: Errors
    baseline: str | None = None
    max_cost_usd: float | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """Read the settings of a session. Models from the command line replace the project's models.

        Raises UsageError for a report file with an unknown extension or in a missing folder."""
        option = config.option
        reports = tuple(config.invocation_params.dir / file for file in option.workbench_report)
        try:
            for file in reports:
                workbench.Report.form_of(file)
        except ValueError as error:
            raise pytest.UsageError(f"--workbench-report: {error}") from None
        for file in reports:
            if not file.parent.is_dir():
                raise pytest.UsageError(f"--workbench-report: there is no folder {file.parent}")
        return cls(
            models=_models(config),
            repeats=option.workbench_repeats,
            repeat_rule=option.workbench_repeat_rule,
            concurrency=option.workbench_concurrency or workbench.RunOptions().concurrency,
            max_cost_usd=option.workbench_max_cost,
            trust=option.workbench_trust,
            execute=option.workbench_execute,
            history=option.workbench_history,
            baseline=option.workbench_baseline,
            reports=reports,
            errors=option.workbench_errors,
        )

    def refuse_unknown_models(self, suites: Iterable[workbench.LoadedSuite]) -> None:
        """Raise UsageError if a suite cannot run on one of the models."""
        if problems := unknown_models(suites, self.models):
            raise pytest.UsageError("; ".join(problems))

    @property
    def options(self) -> dict[str, Any]:
        """The settings as arguments of `workbench.evaluate`, without the models."""
        options: dict[str, Any] = {"concurrency": self.concurrency, "history": self.history}
        # An option that was not given is omitted, so that the default of `evaluate` or of the suite applies.
        if self.repeats is not None:
            options["repeats"] = self.repeats
        if self.repeat_rule is not None:
            options["repeat_rule"] = self.repeat_rule
        if self.max_cost_usd is not None:
            options["max_cost_usd"] = self.max_cost_usd
        options["approve"] = workbench.ALL if self.trust else workbench.TRUSTED
        if self.baseline is not None:
            options |= {"baseline": self.baseline, "fail_on": "regression"}
        if self.execute:
            options["execute"] = True
        return options


def _models(config: pytest.Config) -> tuple[str, ...]:
    """Return the full names of the models from the command line, otherwise from the project's settings.

    Raises pytest.UsageError for a name that is invalid."""
    lists = config.option.workbench_model or config.getini("workbench_models")
    folder = config.invocation_params.dir
    paths = [folder / argument.partition("::")[0] for argument in config.args]
    try:
        return models_in(lists, paths or [folder])
    except workbench.UsageError as error:
        raise pytest.UsageError(f"--workbench-model: {error}") from None


class Workbench:
    """The functions of `import workbench` with the settings of the session.

    Evaluations use the models and the approval of pytest's command line. With pytest-xdist, workers share the number of
    concurrent runs. Arguments of a call take precedence over the settings."""

    load = staticmethod(workbench.load)
    grade = staticmethod(workbench.grade)
    call = staticmethod(workbench.call)
    ALL = staticmethod(workbench.ALL)

    def __init__(self, config: pytest.Config) -> None:
        self._settings = Settings.of(config)
        self._workers = int(getattr(config, "workerinput", {}).get("workercount", 1))

    def evaluate(self, suites: Any, **options: Any) -> workbench.Report:
        """Call `workbench.evaluate` with the settings of the session and these arguments."""
        return workbench.evaluate(suites, **self._with_settings(options))

    async def evaluate_async(self, suites: Any, **options: Any) -> workbench.Report:
        """Call `workbench.evaluate_async` with the settings of the session and these arguments."""
        return await workbench.evaluate_async(suites, **self._with_settings(options))

    def beside(self, folder: Path) -> Callable[..., workbench.Report]:
        """Return a function like `evaluate` that takes the path of a suite relative to `folder`."""

        def workbench_suite(suite: str | Path, **options: Any) -> workbench.Report:
            return self.evaluate(folder / suite, **options)

        return workbench_suite

    def _with_settings(self, options: dict[str, Any]) -> dict[str, Any]:
        settings = self._settings.options
        if not options.keys() & {"model", "models"}:
            settings["models"] = self._settings.models
        # The limit applies to the whole session, but each worker of pytest-xdist evaluates independently and gets a
        # share.
        settings["concurrency"] = max(1, settings["concurrency"] // self._workers)
        return settings | options
