"""The models to choose from: the offline model, models of `workbench.toml` files, and models named by suites."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from workbench.config.agents import AGENT, KNOWN_AGENTS, KnownAgent, agent_named, installed_version, is_installed
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.providers.built_in import OFFLINE, PLANTED_MODELS, built_in_models, is_built_in
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.settings import all_model_names
from workbench.suite.suite_file import SuiteFile

MAX_SUITES_NAMED = 2
"""The maximum number of suites named in the description of a model. More suites are only counted."""


@dataclass(frozen=True)
class ModelChoice:
    """A model in the list, with a one-line description that contains no secrets.

    `short` is the description for narrow screens and begins with the host. `hint` names what an agent needs before it
    can run. An agent is in the list even if it is not installed (`is_installed`)."""

    name: str
    detail: str
    short: str
    hint: str = ""
    is_installed: bool = True


@dataclass(frozen=True)
class ModelChoices:
    """The models to choose from, and the problems because of which other models are missing."""

    choices: tuple[ModelChoice, ...]
    problems: tuple[str, ...]


def model_choices(
    program: Program, files: Sequence[SuiteFile], checked: Iterable[str], recorded: Iterable[str]
) -> ModelChoices:
    """Return the models of settings files and suites. Descriptions name the endpoint and whether the API key is set.

    All `checked` models and the models of `recorded` runs are included. Files are read, but no endpoint is
    contacted."""
    # If a model is named in several places, the first of these describes it: offline model, settings, suites,
    # recordings, earlier choices.
    folders = list(dict.fromkeys(file.path.parent for file in files)) or [Path()]
    offline = next(model.description for model in built_in_models() if model.name == OFFLINE)
    found: dict[str, _Known] = {OFFLINE: _Known(offline, brief="not a language model")}
    problems: dict[str, None] = {}
    for folder in folders:
        try:
            named = program.models.named(folder)
        except ConfigError as error:
            problems.update(dict.fromkeys(error.problems))
            continue
        for spec in named:
            origin_text = "yours" if spec.origin == "user" else "named next to the suites"
            found.setdefault(spec.name, replace(_endpoint_detail(program, spec, folder), origin_text=origin_text))
    for model, namers in _named_by_suites(files).items():
        if model in found:
            continue
        by = "named by " + ", ".join(file.path.stem for file in namers[:MAX_SUITES_NAMED])
        if len(namers) > MAX_SUITES_NAMED:
            by += f" and {len(namers) - MAX_SUITES_NAMED} more"
        found[model] = replace(_described(program, model, namers[0].path.parent, by_suite=True), origin_text=by)
    for file in files:
        if file.suite is not None and (subject := file.suite.subject) is not None:
            found.setdefault(
                subject.name, _Known("runs its cases by itself", origin_text=f"the subject of {file.path.stem}")
            )
    others = dict.fromkeys(recorded, "recorded on") | dict.fromkeys(checked, "chosen")
    for model, why in others.items():
        if model not in found:
            found[model] = replace(_described(program, model, folders[0], by_suite=False), origin_text=why)
    agents = {f"{AGENT}{name}": is_installed(agent) for name, agent in KNOWN_AGENTS.items()}
    installed = [model for model, is_there in agents.items() if is_there]
    for model in (*installed, *PLANTED_MODELS, *agents):
        if model not in found:
            found[model] = _described(program, model, folders[0], by_suite=False)
    # The URL of an endpoint may contain a secret.
    hide = program.secrets.redact
    choices = []
    for name, known in found.items():
        hint = hide(one_line(known.hint))
        choices.append(ModelChoice(name, hide(known.detail), hide(known.short), hint, agents.get(name, True)))
    shown_problems = [one_line(hide(problem)) for problem in problems]
    return ModelChoices(tuple(choices), tuple(shown_problems))


def _named_by_suites(files: Sequence[SuiteFile]) -> dict[str, list[SuiteFile]]:
    named: dict[str, list[SuiteFile]] = {}
    for file in files:
        if file.suite is not None:
            for model in all_model_names(file.suite):
                named.setdefault(model, []).append(file)
    return named


def _agent(program: Program, agent: KnownAgent, folder: Path) -> _Known:
    if not is_installed(agent):
        hint = f"{AGENT}{agent.name} is not installed: {agent.install}"
        return _Known(f"agent, not installed: {agent.install}", brief="agent, not installed", hint=hint)
    named = f"agent {installed_version(agent)}".rstrip()
    command = shlex.join(agent.command)
    try:
        environment = program.environment.of(folder)
    except ConfigError as error:
        return _Known(str(error), command)
    if any(environment.get(name, "").strip() for name in agent.login_variables):
        return _Known(named, origin_text=command, brief=named)
    first, *others = agent.login_variables
    hint = f"{AGENT}{agent.name} runs in a home without your login: set {' or '.join(agent.login_variables)}"
    missing = f"{named}, key missing: set {first}{' or another' if others else ''}"
    return _Known(missing, origin_text=command, brief=f"{named}, key missing", hint=hint)


def _described(program: Program, model: str, folder: Path, *, by_suite: bool) -> _Known:
    if (agent := agent_named(model)) is not None:
        return _agent(program, agent, folder)
    if is_built_in(model):
        known = {info.name: info.description for info in built_in_models()}
        return _Known(known.get(model, "replays a recorded run"))
    try:
        return _endpoint_detail(program, program.models.resolve(model, folder, by_suite=by_suite), folder)
    except ConfigError as error:
        return _Known(str(error))


def _endpoint_detail(program: Program, spec: ModelSpec, folder: Path) -> _Known:
    if spec.place is not None and spec.place.problem:
        return _Known(spec.place.problem, spec.base_url)
    try:
        environment = program.environment.of(folder)
    except ConfigError as error:
        return _Known(str(error), spec.base_url)
    missing = [name for name in spec.variables if not environment.get(name, "").strip()]
    if spec.api_key_env in missing:
        return _Known(f"key missing: set {spec.api_key_env}", spec.base_url)
    if missing:
        return _Known(f"variable missing: set {', '.join(missing)}", spec.base_url)
    if spec.key_command:
        return _Known("key printed by a command", spec.base_url)
    if spec.credentials:
        return _Known(f"with {spec.credentials}", spec.base_url)
    if spec.api_key_env is None and not spec.has_key_header:
        return _Known("no key needed", spec.base_url)
    return _Known("key present", spec.base_url)


@dataclass(frozen=True)
class _Known:
    """The parts of a model's description.

    `state` says, for example, whether the key is set. `origin_text` is the file or suite that names the model."""

    state: str
    url: str = ""
    origin_text: str = ""
    brief: str = ""
    """A shorter text for the state."""
    hint: str = ""

    @property
    def detail(self) -> str:
        return _line(self.state, self.url, self.origin_text)

    # A URL may contain a user name and a password, so the short description has only the host.
    @property
    def short(self) -> str:
        return _line(urlsplit(self.url).netloc.rpartition("@")[2], self.brief or self.state, self.origin_text)


def _line(*parts: str) -> str:
    return one_line(f" {GLYPHS.dot} ".join(filter(None, parts)))
