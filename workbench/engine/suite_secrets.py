"""Registers the secrets of suites, so that they are redacted in everything that is stored or shown.

Runs register secrets too, but only when they open models and start servers, which is too late for some reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.models import ConfigError
from workbench.config.passed_variables import add_passed, passed_variables
from workbench.config.program import Program
from workbench.config.secrets import Secrets
from workbench.config.variables import environment_names
from workbench.encoding import toml_of
from workbench.startup import late_pattern
from workbench.suite.model import agents_of, servers_of
from workbench.suite.problems import Place, place_text
from workbench.suite.server_model import secret_texts
from workbench.suite.settings import judged_checks
from workbench.tools.connection import register_server_secrets

if TYPE_CHECKING:
    from workbench.engine.model_specs import ModelSpecs
    from workbench.engine.plan import PlannedRun
    from workbench.history.history import History
    from workbench.history.records import BatchRow
    from workbench.suite.model import Suite
    from workbench.suite.server_model import Server
    from workbench.suite.suite_file import SuiteFile


_NAMED = late_pattern(r"\$([\w-]+)")


def register_secrets(program: Program, folder: Path, suite: Suite | None = None, text: str = "") -> None:
    """Register the secrets of the suites in a folder.

    The secrets are the values in `.env`, the keys of the folder's models, and the server settings of `suite`. Tokens in
    the suite's `text` are not redacted, because the user wrote them there. Raises ConfigError."""
    program.secrets.exempt(text)
    environment = program.environment.of(folder)
    names: set[str] = set()
    for spec in program.models.named(folder):
        names.update(spec.secret_variables)
    servers: tuple[Server, ...] = ()
    if suite is not None:
        servers = (*servers_of(suite), *(agent.as_server for agent in agents_of(suite)))
    for server in servers:
        register_server_secrets(server, program.secrets)
        for value in secret_texts(server):
            names.update(environment_names(value))
    _learn(program, names, environment)
    if any(server.command for server in servers):
        own = program.environment.variables
        add_passed(passed_variables(own), own, program.secrets)


def exempt_stored_suites(program: Program, history: History, batch: BatchRow) -> None:
    """Exempt tokens in the texts of a batch's stored suites from redaction, because these texts are shown unchanged."""
    from workbench.history.records import HistoryError  # imported here: most commands open no history

    for suite in batch.suites:
        with suppress(HistoryError):
            program.secrets.exempt(history.suite_text(suite))


def register_run_secrets(program: Program, runs: Iterable[PlannedRun], specs: ModelSpecs) -> None:
    """Register the secrets of the suites of runs, and the keys of the models and judges that the runs use.

    Errors in settings are ignored here, because the runs report them."""
    runs = tuple(runs)
    for run in {run.file.path: run for run in runs}.values():
        with suppress(ConfigError):
            register_secrets(program, run.file.path.parent, run.suite, run.file.text)
    for run in {(run.file.path, run.model, run.model_of_suite): run for run in runs}.values():
        with suppress(ConfigError):
            if (spec := specs.of(run)) is not None:
                _learn(program, spec.secret_variables, _environment(program, run, specs))
    for run in {(run.file.path, run.case.id): run for run in runs}.values():
        with suppress(ConfigError):
            if (player := specs.user_of(run.file.path, run.case)) is not None:
                _learn(program, player.secret_variables, _environment(program, run, specs))
        for check in judged_checks(run.suite, run.case):
            with suppress(ConfigError):
                _learn(
                    program, specs.judge_of(run.file.path, check).secret_variables, _environment(program, run, specs)
                )


def literal_secrets(file: SuiteFile, secrets: Secrets) -> Iterator[str]:
    """Yield a message for each place in a suite that holds a secret instead of a variable.

    A place is a value, a line of a comment, or a line of a text that is not TOML. The messages omit the secrets."""
    file = file.written or file
    text, found = file.text, False
    # An escaped secret appears only in the parsed values, not in the text.
    if secrets.redact(text) is text and "\\" not in text:
        return
    with suppress(ValueError, RecursionError):
        for place, value in _leaves(toml_of(text)):
            if (without := secrets.redacted(value)) is not value:
                found = True
                where = f"{file.path}:{file.positions.line(place)} ({place_text(place)})"
                if place[-1] == "url":  # variables are not expanded in a URL
                    yield f"{where} holds a secret: give it in headers, as ${{NAME}}"
                else:
                    yield _advice(where, str(value), str(without))
    if found:
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if (shown := secrets.redact(line)) is not line:
            found = True
            yield _advice(f"{file.path}:{number}", line, shown)
    # The loop above does not find a secret that spans several lines.
    if not found and (shown := secrets.redact(text)) is not text:
        yield _advice(f"{file.path}", text, shown)


def _advice(location: str, before: str, shown: str) -> str:
    # Redaction replaces a secret by the name of its variable. So only the redacted text has this name.
    names = (name for name in _NAMED.findall(shown) if f"${name}" not in before)
    return f"{location} holds a secret: write ${{{next(names, 'NAME')}}} in its place, or omit it"


def _leaves(value: object, place: Place = ()) -> Iterator[tuple[Place, object]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, (*place, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(each, (*place, index))
    else:
        yield place, value


def _environment(program: Program, run: PlannedRun, specs: ModelSpecs) -> Mapping[str, str]:
    try:
        return specs.environment_at(run.file.path)
    except ConfigError:
        return program.environment.variables  # a `.env` never overrides these variables


def _learn(program: Program, names: Iterable[str], environment: Mapping[str, str]) -> None:
    for name in names:
        if name in environment:
            program.secrets.add(name, environment[name].strip())
