"""The approval of what suites need, for the Python API: nothing, everything, trusted suites, or a standing approval."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TypeVar

from workbench.api.suites import ApprovalError, UsageError
from workbench.config.agents import agent_named
from workbench.config.folders import user_folders
from workbench.config.model_book import ModelOptions
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program, create_program
from workbench.dataclasses import dataclass
from workbench.engine.model_specs import ModelSpecs
from workbench.evaluation.approval import Approval, ApprovalRequest, Needs, Trust, needs_approval
from workbench.evaluation.planner import has_subject
from workbench.evaluation.trust import trust_store
from workbench.providers.built_in import BuiltInModels, is_built_in
from workbench.providers.model import ModelError
from workbench.suite.files import absolute
from workbench.suite.project import find_suites
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.suite.trust import SuiteNeeds

# A standing approval is given once and holds for many evaluations, as in the MCP server for coding agents. The agent
# that requests runs may itself edit the suites, their code and their `.env` files. The approval therefore covers only
# what the suites needed when it was given, and every evaluation is compared with that state.

_Environment = Mapping[str, str] | ConfigError

_Models = Mapping[str, ModelSpec]

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class _Folder:
    """The environment variables and the models of the suites in one folder, at the time of the approval."""

    # A `.env` file usually holds keys, so `repr` leaves the variables out.
    environment: _Environment = field(repr=False)
    models: _Models


@dataclass(frozen=True)
class _Suite:
    """The needs of a suite, and the definitions of the models that the caller named, at the time of the approval."""

    request: ApprovalRequest = field(repr=False)
    models: _Models


@dataclass(frozen=True)
class StandingApproval:
    """An approval of permanently trusted suites, and of the needs that `suites` had when the user gave the approval.

    It can be used for many evaluations, while the environment variables and the models of `folders` stay unchanged."""

    suites: Mapping[Path, _Suite]
    folders: Mapping[Path, _Folder]

    def __call__(self, needs: SuiteNeeds) -> bool:
        """Return `False`. Like `TRUSTED`, a standing approval must be passed as `approve` itself, not called."""
        return False

    def check(self, needs: Needs, program: Program) -> None:
        """Raise ApprovalError with all needs that are not approved, and the changes since the approval."""
        trust = Trust(trust_store(program.folders))
        refused = []
        for request in needs.requests:
            asked = _asked_unapproved(needs.specs, request.file.path)
            # Permanent trust covers a file's needs, but neither its `.env` file nor its folder's models.
            changed: list[str] = []
            if request.must_ask and not trust.covers(request):
                changed += self._new_needs(request)
            if request.must_ask or asked:
                changed += self._changed_around(request, asked)
            if changed:
                refused.append((str(request.file.path), request.needs, [*map(program.secrets.redact, changed)]))
        if refused:
            raise ApprovalError(refused)

    def _new_needs(self, request: ApprovalRequest) -> Iterator[str]:
        suite = self.suites.get(absolute(request.file.path))
        if suite is None:
            yield from request.needs.lines(request.asked)
            return
        before = suite.request.all_needs
        needed = replace(request.needs, models=tuple(sorted(request.asked, key=str)))
        if added := _without(needed, before).lines(request.asked):
            yield from added
            for line in _without(replace(before, models=()), needed).lines():
                yield f"approved instead: {line}"
        code, known = request.grant.code.modules, suite.request.grant.code.modules
        if altered := sorted(name for name, found in code.items() if known.get(name) != found):
            yield f"import code that has changed since it was approved: {', '.join(altered)}"

    def _changed_around(self, request: ApprovalRequest, models: Iterable[ModelSpec]) -> Iterator[str]:
        path = absolute(request.file.path)
        folder = _Folder({}, {})
        # The variables and models of the nearest approved folder above the suite apply to the suite.
        for place in path.parents:
            if place in self.folders:
                folder = self.folders[place]
                break
        if variables := _changed_variables(folder.environment, request.grant.environment):
            yield f"use variables of a .env file that have changed since they were approved: {', '.join(variables)}"
        approved = dict(folder.models)
        if path in self.suites:
            approved = {**self.suites[path].models, **folder.models}
        for spec in models:
            before = approved.get(spec.name)
            if before is None:
                yield f"ask the model {spec.name}, which was not approved: {spec.description}"
            elif before != spec:
                yield f"ask the model {spec.name}, which has changed since it was approved: {_difference(before, spec)}"


def standing_approval(
    paths: Sequence[Path], *, models: Sequence[str], judge: str | None, trust: bool
) -> StandingApproval:
    """Approve the suites at `paths` as they are now.

    The approval covers the settings of `models` and `judge`, the environment of the suites and, with `trust`, all needs
    of these suites. Raises UsageError for an unknown model."""
    program = create_program(user_folders(), os.environ, ModelOptions(frozenset(models), judge=judge))
    files = [load_suite(path) for path in find_suites(paths)]
    places = {absolute(file.path.parent) for file in files}
    for path in paths:
        places.add(absolute(path if path.is_dir() else path.parent))
    names = dict.fromkeys(models)
    if judge is not None:
        names[judge] = None
    folders = {}
    for place in places:
        folders[place] = _Folder(_environment_at(place, program), _reached(place, names, program))
    _refuse_unknown(names, folders.values(), files, program)
    trusted = [file for file in files if trust and file.suite is not None]
    needs = Needs.of_servers(trusted, program)
    suites = {}
    for request in needs.requests:
        specs = _asked_unapproved(needs.specs, request.file.path)
        suites[absolute(request.file.path)] = _Suite(request, {spec.name: spec for spec in specs})
    return StandingApproval(suites, folders)


def _asked_unapproved(specs: ModelSpecs, suite: Path) -> list[ModelSpec]:
    """Return the models that a suite contacts without listing them as needs, such as models that the user named."""
    return [spec for spec, by_suite in specs.found_for(suite) if not (by_suite and needs_approval(spec))]


def _without(needs: SuiteNeeds, others: SuiteNeeds) -> SuiteNeeds:
    return replace(
        needs,
        commands=_new(needs.commands, others.commands),
        modules=_new(needs.modules, others.modules),
        urls=_new(needs.urls, others.urls),
        python=_new(needs.python, others.python),
        environment=_new(needs.environment, others.environment),
        models=_new(needs.models, others.models),
        passed=_new(needs.passed, others.passed),
        calls=_new(needs.calls, others.calls),
        roots=_new(needs.roots, others.roots),
        answers=_new(needs.answers, others.answers),
    )


def _new(items: Sequence[_Item], known: Sequence[_Item]) -> tuple[_Item, ...]:
    return tuple([item for item in items if item not in known])


def _environment_at(folder: Path, program: Program) -> _Environment:
    try:
        return program.environment.of(folder)
    except ConfigError as error:
        return error


def _changed_variables(before: _Environment, now: _Environment) -> list[str]:
    # If the `.env` file was unreadable at the approval, the same error is not a change.
    if isinstance(before, ConfigError) or isinstance(now, ConfigError):
        if str(before) == str(now):
            return []
        return ["all of them"]
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _reached(folder: Path, names: Iterable[str], program: Program) -> _Models:
    """Return the definitions of the named models in a folder. A name without a definition is left out."""
    found = {}
    for name in names:
        # A model that is not defined in this folder may be defined in another folder. `_refuse_unknown` checks this
        # later.
        with suppress(ConfigError):
            found[name] = program.models.resolve(name, folder, by_suite=False, judges=True)
    return found


def _refuse_unknown(
    names: Iterable[str], folders: Collection[_Folder], files: Iterable[SuiteFile], program: Program
) -> None:
    files = tuple(files)
    for name in names:
        if any(name in folder.models for folder in folders):
            continue
        if any(has_subject(file, name) for file in files):
            continue
        try:
            if is_built_in(name):
                BuiltInModels().check(name, Path())
            elif agent_named(name) is None:
                program.models.resolve(name, Path(), by_suite=False)
        except (ConfigError, ModelError) as error:
            raise UsageError(program.secrets.redact(str(error))) from None


def _difference(before: ModelSpec, now: ModelSpec) -> str:
    parts = []
    for each in fields(now):
        if getattr(before, each.name) != getattr(now, each.name):
            parts.append(each.name)
    return f"{', '.join(parts)}; {before.description} was approved, and now it is {now.description}"


Approve = Callable[[SuiteNeeds], bool]
"""A function that gets the needs of a suite and returns whether to approve them. `needs.lines()` describes them."""


def approve_nothing(needs: SuiteNeeds) -> bool:
    """Approve nothing. This is the default of `approve`.

    This function refuses suites that would start a process, import a file, or contact an address that the caller did
    not name."""
    return False


def ALL(needs: SuiteNeeds) -> bool:  # noqa: N802 (it is used like a constant: approve=workbench.ALL)
    """Approve everything that the suites need.

    Use it only for suites that you wrote or have read, because suites may start processes and import code on this
    machine."""
    return True


def TRUSTED(needs: SuiteNeeds) -> bool:  # noqa: N802
    """Approve suites that the user trusted permanently, in the app or on the command line.

    Pass the function itself, as in `approve=workbench.TRUSTED`. Calling it returns `False`, because trust is recorded
    for suite files and not for needs."""
    return False


def approval_for(needs: Needs, approve: Approve, program: Program, built_suites: Collection[SuiteFile]) -> Approval:
    """Ask `approve` about each suite that needs something.

    `built_suites` are the suites that the caller's code built. They need no approval, because that code could itself
    start the same commands. A suite with text from elsewhere, such as a file of variants, is not among these suites.

    Raises ApprovalError with all needs that are not approved."""
    written = {(file.path, file.text) for file in built_suites}
    others, granted = [], set()
    for request in needs.requests:
        file = request.file.written or request.file
        if (file.path, file.text) in written and not request.from_history:
            granted.add(file.path)
        else:
            others.append(request)
    asked = [request for request in others if request.must_ask]
    # Standing approval and trust depend on files too, so they cannot be decided by a function that only gets the needs.
    if isinstance(approve, StandingApproval):
        approve.check(replace(needs, requests=tuple(others)), program)
        refused = []
    elif approve is TRUSTED:
        trust = Trust(trust_store(program.folders))
        refused = [request for request in asked if not trust.covers(request)]
    else:
        refused = [request for request in asked if not approve(request.needs)]
    if refused:
        described = []
        for request in refused:
            lines = [*map(program.secrets.redact, request.needs.lines(request.asked))]
            described.append((str(request.file.path), request.needs, lines))
        raise ApprovalError(described)
    return needs.approved({*granted, *(request.file.path for request in asked)})
