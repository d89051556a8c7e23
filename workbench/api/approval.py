"""What a Python caller approves: nothing, all, or what a function says."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields, replace
from pathlib import Path

from workbench.api.errors import ApprovalError, UsageError
from workbench.config.folders import user_folders
from workbench.config.model_book import ModelOptions
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program, program_in
from workbench.dataclasses import dataclass
from workbench.engine.model_specs import Specs
from workbench.evaluation.approval import Approval, Needs, Request, Trust, needs_asking
from workbench.evaluation.plan import trust_store
from workbench.evaluation.planner import has_subject
from workbench.providers.built_in import BuiltInModels, is_built_in
from workbench.providers.model import ModelError
from workbench.suite.files import absolute
from workbench.suite.project import find_suites
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.suite.trust import SuiteNeeds

# Approval that is given once and holds for long: of what suites need at that time, and of nothing newer. The
# program that asks for runs may itself edit the files meanwhile, so each run is compared with what stood there.

_Environment = Mapping[str, str] | ConfigError

_Models = Mapping[str, ModelSpec]


@dataclass(frozen=True)
class _Folder:
    """What the suites of a folder share: environment variables, and how the models that may be asked are reached."""

    environment: _Environment = field(repr=False)
    models: _Models


@dataclass(frozen=True)
class _Suite:
    """What a suite needed, and the user's own models that it named."""

    request: Request = field(repr=False)
    models: _Models


@dataclass(frozen=True)
class StandingApproval:
    """Approves what the user has trusted for good, and what `suites` needed when it was made. In either case the
    environment variables of `folders`, and their models, must be what they were then."""

    suites: Mapping[Path, _Suite]
    folders: Mapping[Path, _Folder]

    def __call__(self, needs: SuiteNeeds) -> bool:
        """Approve nothing: like `TRUSTED`, it has to be given as it is."""
        return False

    def check(self, needs: Needs, program: Program) -> None:
        """Raise ApprovalError with everything that is not approved, and what has changed."""
        trust = Trust(trust_store(program.folders))
        refused = []
        for request in needs.requests:
            asked = _asked_unapproved(needs.specs, request.file.path)
            changed: list[str] = []
            if request.must_ask and not trust.covers(request):
                changed += self._new_needs(request)
            if request.must_ask or asked:
                changed += self._changed_around(request, asked)
            if changed:
                refused.append((str(request.file.path), request.needs, [*map(program.secrets.redact, changed)]))
        if refused:
            raise ApprovalError(refused)

    def _new_needs(self, request: Request) -> Iterator[str]:
        """What was not approved of a suite, and what was approved in its place."""
        suite = self.suites.get(absolute(request.file.path))
        if suite is None:
            yield from request.needs.lines(request.asked)
            return
        before = suite.request.whole
        needed = replace(request.needs, models=tuple(sorted(request.asked, key=str)))
        if added := _without(needed, before).lines(request.asked):
            yield from added
            yield from (f"approved instead: {line}" for line in _without(replace(before, models=()), needed).lines())
        code, known = request.grant.code.modules, suite.request.grant.code.modules
        if altered := sorted(name for name, found in code.items() if known.get(name) != found):
            yield f"import code that has changed since it was approved: {', '.join(altered)}"

    def _changed_around(self, request: Request, asked: Iterable[ModelSpec]) -> Iterator[str]:
        path = absolute(request.file.path)
        folder = next((self.folders[place] for place in path.parents if place in self.folders), _Folder({}, {}))
        if variables := _changed_variables(folder.environment, request.grant.environment):
            yield f"use variables of a .env file that have changed since they were approved: {', '.join(variables)}"
        suite = self.suites.get(path)
        approved = {**(suite.models if suite is not None else {}), **folder.models}
        for spec in asked:
            before = approved.get(spec.name)
            if before is None:
                yield f"ask the model {spec.name}, which was not approved: {spec.description}"
            elif before != spec:
                yield f"ask the model {spec.name}, which has changed since it was approved: {_difference(before, spec)}"


def standing_approval(
    paths: Sequence[Path], *, models: Sequence[str] = (), judge: str | None = None, trust: bool = False
) -> StandingApproval:
    """Return an approval of what stands there now: how `models` and `judge` are reached, the environment of the suites
    at `paths` and, with `trust`, all that these suites need. Raises UsageError for a model that is not known."""
    program = program_in(user_folders(), os.environ, ModelOptions(frozenset(models), judge=judge))
    files = [load_suite(path) for path in find_suites(paths)]
    given = (path if path.is_dir() else path.parent for path in paths)
    places = {absolute(place) for place in (*given, *(file.path.parent for file in files))}
    names = dict.fromkeys((*models, *([judge] if judge is not None else [])))
    reached = {place: _reached(place, names, program) for place in places}
    _refuse_unknown(names, reached.values(), files, program)
    folders = {place: _Folder(_environment_at(place, program), reached[place]) for place in places}
    needs = Needs.of_servers((file for file in files if trust and file.suite is not None), program)
    suites = {
        absolute(request.file.path): _Suite(
            request, {spec.name: spec for spec in _asked_unapproved(needs.specs, request.file.path)}
        )
        for request in needs.requests
    }
    return StandingApproval(suites, folders)


def _asked_unapproved(specs: Specs, suite: Path) -> list[ModelSpec]:
    """The models found for a suite that its needs do not list, or that a person named."""
    return [spec for spec, by_suite in specs.found_for(suite) if not (by_suite and needs_asking(spec))]


def _without(needs: SuiteNeeds, others: SuiteNeeds) -> SuiteNeeds:
    """What needs have and others have not."""
    return replace(
        needs,
        commands=tuple(each for each in needs.commands if each not in others.commands),
        modules=tuple(each for each in needs.modules if each not in others.modules),
        urls=tuple(each for each in needs.urls if each not in others.urls),
        python=tuple(each for each in needs.python if each not in others.python),
        environment=tuple(each for each in needs.environment if each not in others.environment),
        models=tuple(each for each in needs.models if each not in others.models),
    )


def _environment_at(folder: Path, program: Program) -> _Environment:
    try:
        return program.environment.of(folder)
    except ConfigError as error:
        return error


def _changed_variables(before: _Environment, now: _Environment) -> list[str]:
    if isinstance(before, ConfigError) or isinstance(now, ConfigError):
        return [] if str(before) == str(now) else ["all of them"]
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _reached(folder: Path, names: Iterable[str], program: Program) -> _Models:
    """How models are reached from a folder, without those that are not known there."""
    found = {}
    for name in names:
        with suppress(ConfigError):
            found[name] = program.models.resolve(name, folder, by_suite=False, judges=True)
    return found


def _refuse_unknown(
    names: Iterable[str], reached: Collection[_Models], files: Iterable[SuiteFile], program: Program
) -> None:
    """Raise UsageError for models that are known in no folder, and are the subject of no suite."""
    files = tuple(files)
    for name in names:
        if any(name in models for models in reached) or any(has_subject(file, name) for file in files):
            continue
        try:
            if is_built_in(name):
                BuiltInModels().check(name, Path())
            else:
                program.models.resolve(name, Path(), by_suite=False)
        except (ConfigError, ModelError) as error:
            raise UsageError(program.secrets.redact(str(error))) from None


def _difference(before: ModelSpec, now: ModelSpec) -> str:
    parts = [each.name for each in fields(now) if getattr(before, each.name) != getattr(now, each.name)]
    return f"{', '.join(parts)}; approved was {before.description}, now it is {now.description}"


Approve = Callable[[SuiteNeeds], bool]
"""Decides about a suite: whether it may do all that it needs. `str` of a need says what it is, as does `lines()`."""


def approve_nothing(needs: SuiteNeeds) -> bool:
    """Approve nothing: suites that would start a process, import a file, or send anything to an address that the
    caller did not name are refused."""
    return False


def ALL(needs: SuiteNeeds) -> bool:  # noqa: N802 (it is used like a constant: approve=workbench.ALL)
    """Approve whatever the suites need. Say this of suites that you have read or written."""
    return True


def TRUSTED(needs: SuiteNeeds) -> bool:  # noqa: N802
    """Approve what the user has trusted for good, in the app or on the command line. That is remembered for each suite,
    so it has to be given as it is, `approve=workbench.TRUSTED`: a call of this function alone approves nothing."""
    return False


def approval_for(needs: Needs, approve: Approve, program: Program) -> Approval:
    """Ask about each suite that needs something. Raises ApprovalError with all that is not approved."""
    asked = [request for request in needs.requests if request.must_ask]
    if isinstance(approve, StandingApproval):
        approve.check(needs, program)
        refused = []
    elif approve is TRUSTED:
        trust = Trust(trust_store(program.folders))
        refused = [request for request in asked if not trust.covers(request)]
    else:
        refused = [request for request in asked if not approve(request.needs)]
    if refused:
        raise ApprovalError(
            (str(request.file.path), request.needs, [*map(program.secrets.redact, request.needs.lines(request.asked))])
            for request in refused
        )
    return needs.approved({request.file.path for request in asked})
