"""What runs, gradings and servers need of this machine, and what a person allowed of it.

A proposal reads everything that lies outside the suites: settings, environment, the code that would be imported. Then
a person is asked, by the command line or the app, and the approval holds what was read. Nothing of it is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.model_specs import Specs
from workbench.engine.plan import PlannedRun
from workbench.engine.suite_secrets import learn_secrets_of_runs
from workbench.suite.model import Case, Suite
from workbench.suite.settings import judged_checks, models_named_by
from workbench.suite.suite_file import SuiteFile
from workbench.suite.trust import ModelNeed, SuiteNeeds, TrustError, TrustStore, needs_trust
from workbench.tools.grant import Grant
from workbench.tools.listings import Listings
from workbench.tools.python_code import find_code

if TYPE_CHECKING:
    from workbench.evaluation.plan import Plan


@dataclass(frozen=True)
class Request:
    """What one suite would use.

    `needs` is what is asked about, `whole` all that the suite needs, of which the former may be a part; `asked` are the
    models that would be asked now. Without `must_ask` the suite can be used as an untrusted one. `mocks` says that
    mocks will do. `of_history`: not all of it is what the suite's file says."""

    file: SuiteFile
    needs: SuiteNeeds
    whole: SuiteNeeds
    grant: Grant
    asked: frozenset[ModelNeed] = frozenset()
    must_ask: bool = True
    mocks: bool = False
    of_history: bool = False


@dataclass(frozen=True)
class Approval:
    """What may be used: how models are reached, and the grants of suites by their paths.

    A suite without a grant starts nothing, imports nothing, and has nobody asked but the user's own models."""

    specs: Specs = field(repr=False)
    grants: Mapping[Path, Grant]

    def grant(self, suite: Path) -> Grant | None:
        """What a suite may use, `None` for one that is not trusted."""
        return self.grants.get(suite)

    def why_not_asked(self, suite: Path, spec: ModelSpec) -> str | None:
        """Return why a model may not be asked for a suite; `None` where it may."""
        if not needs_asking(spec):
            return None
        grant = self.grant(suite)
        if grant is None:
            return f"{suite.name} is not trusted: it would send requests to {spec.base_url}"
        if model_need(spec) not in grant.needs.models:
            return f"the model {spec.name!r} at {spec.base_url} is not among those that were approved for {suite.name}"
        return None


@dataclass(frozen=True)
class Needs:
    """What is about to be used, as it was read: one request for each suite."""

    requests: tuple[Request, ...]
    specs: Specs = field(repr=False)

    @classmethod
    def of_runs(cls, runs: Iterable[PlannedRun], program: Program, known: Specs | None = None) -> Needs:
        """What runs would use.

        `known` has been found out about them already, and is not read again."""
        runs = tuple(runs)
        specs = _specs(program, known)
        specs.find(runs)
        listings = Listings(program.folders.listings)
        by_suite: dict[Path, list[PlannedRun]] = {}
        for run in runs:
            by_suite.setdefault(run.file.path, []).append(run)
        requests = []
        for of_suite in by_suite.values():
            file = of_suite[0].file
            asked = models_asked(of_suite, specs)
            stated = needs_of(file, specs)
            whole = with_asked(stated, asked)
            request = _request(file, whole, whole, specs)
            requests.append(
                replace(
                    request,
                    asked=asked,
                    must_ask=(whole.beside_models or bool(asked)) and any(run.case.skip is None for run in of_suite),
                    mocks=can_do_with_mocks(file, asked, listings),
                    of_history=file.as_then or whole != stated,
                )
            )
        # Before anything of the runs is written or shown: each learns the key of its model only when it opens that.
        learn_secrets_of_runs(program, runs, specs)
        specs.seal()
        return cls(tuple(requests), specs)

    @classmethod
    def of_servers(cls, files: Iterable[SuiteFile], program: Program) -> Needs:
        """What the servers of sound suites would use when they are started by hand."""
        specs = _specs(program)
        requests = []
        for file in files:
            specs.find_judges(file.path, ())
            whole = needs_of(file, specs)
            needs = replace(whole, models=())
            request = _request(file, needs, whole, specs)
            starts = bool(needs.commands or needs.urls or needs.modules)
            requests.append(replace(request, must_ask=starts, of_history=file.as_then))
        specs.seal()
        return cls(tuple(requests), specs)

    @classmethod
    def of_grading(cls, cases: Iterable[tuple[SuiteFile, Case]], program: Program, *, judges: bool = False) -> Needs:
        """What grading runs of cases of sound suites would use; with `judges`, models are asked.

        Suites that need nothing for it have no request."""
        specs = _specs(program)
        by_suite: dict[Path, tuple[SuiteFile, dict[str, Case]]] = {}
        for file, case in cases:
            by_suite.setdefault(file.path, (file, {}))[1][case.id] = case
        requests = []
        for path, (file, by_id) in by_suite.items():
            assert file.suite is not None
            for case in by_id.values():
                specs.find_judges(path, judged_checks(file.suite, case, mocks=False))
            asked = judges_asked(file, by_id.values(), specs, mocks=False) if judges else frozenset()
            needs = grading_needs(file, by_id.values(), asked)
            if needs.nothing:
                continue
            request = _request(file, needs, needs_of(file, specs), specs)
            requests.append(replace(request, asked=asked, of_history=file.as_then))
        specs.seal()
        return cls(tuple(requests), specs)

    def approved(self, suites: Collection[Path] | None = None) -> Approval:
        """Return the approval of some suites, of all without `suites`."""
        granted = (request for request in self.requests if suites is None or request.file.path in suites)
        return Approval(self.specs, {request.file.path: request.grant for request in granted})


Answer = Literal["always", "once", "mocks", "no"]
"""What a person answers: grant it and remember that, grant it until the program ends, run on mocks alone, or refuse."""


@dataclass(frozen=True)
class Question:
    """What a person is to be asked: one request, or several that need the same.

    `lines` say what granting them allows."""

    requests: tuple[Request, ...]
    lines: tuple[str, ...]

    @property
    def first(self) -> Request:
        """The request to show."""
        return self.requests[0]

    @property
    def suites(self) -> frozenset[Path]:
        """The suites that it is about."""
        return frozenset(request.file.path for request in self.requests)


class Decision:
    """Whether the needs of something are granted: allowed as they are, refused, or open until its `questions` are
    answered. Asking is the caller's: with a prompt, a dialog or an option of its own."""

    def __init__(self, needs: Needs, trust: Trust, *, together: bool = False) -> None:
        """With `together`, one question is about all suites that need the same."""
        self.refused: tuple[Path, ...] = ()
        """The suites that need what was not granted."""
        self._needs = needs
        self._trust = trust
        self._granted: set[Path] = set()
        alike: dict[tuple[SuiteNeeds, Path | None], list[Request]] = {}
        for request in needs.requests:
            if trust.covers(request):
                self._granted.add(request.file.path)
            elif request.must_ask:
                alike.setdefault((request.needs, None if together else request.file.path), []).append(request)
        self.questions = tuple(Question(tuple(group), trust.lines(group[0])) for group in alike.values())

    def answer(self, question: Question, answer: Answer) -> tuple[str, ...]:
        """Take an answer.

        Returns why it cannot be remembered, where it cannot; it is granted all the same, until the program ends."""
        problems = []
        if answer == "no":
            self.refused = (*self.refused, *(request.file.path for request in question.requests))
        for request in question.requests if answer in ("always", "once") else ():
            try:
                self._trust.grant(request, always=answer == "always")
            except TrustError as error:
                problems.append(str(error))
            self._granted.add(request.file.path)
        return tuple(problems)

    def approval(self) -> Approval:
        """Return the approval of everything that was granted."""
        return self._needs.approved(self._granted)


def needs(plan: Plan) -> Needs:
    """Return what the runs of a plan would start, import and send where with which key.

    Reads settings, environment and the code that would be imported; a run uses what is read here, and nothing later."""
    return Needs.of_runs(plan.runs, plan.program, plan.specs)


class Trust:
    """Says which requests are granted without a question, and remembers the answers.

    `all_of_them`: the user has said that every suite is trusted, until the program ends."""

    def __init__(self, store: TrustStore, *, all_of_them: bool = False) -> None:
        self.store = store
        self._all_of_them = all_of_them
        self._once: set[tuple[Path, SuiteNeeds]] = set()

    def covers(self, request: Request) -> bool:
        """Return whether a request is granted already."""
        return self._all_of_them or self._covers(request, request.needs) or self._covers(request, request.whole)

    def covers_whole(self, request: Request) -> bool:
        """Return whether everything that the suite needs is granted already."""
        return self._all_of_them or self._covers(request, request.whole)

    def covers_model(self, need: ModelNeed) -> bool:
        """Return whether a model may be asked, as far as answers go that count until the program ends."""
        return self._all_of_them or any(need in needs.models for _, needs in self._once)

    def _covers(self, request: Request, needs: SuiteNeeds) -> bool:
        path = request.file.path
        if (path, needs) in self._once:
            return True
        if not self.store.is_trusted(path, needs, of_history=request.of_history):
            return False
        with suppress(TrustError):  # the entry stays as it was, and goes on to cover any content
            self.store.add_files(path, needs)
        return True

    def lines(self, request: Request) -> tuple[str, ...]:
        """What granting a request allows, one line each, for a person."""
        changed = self.store.changed_files(request.file.path, request.needs)
        note = (f"the code has changed since it was trusted: {', '.join(changed)}",) if changed else ()
        return (*request.needs.lines(request.asked), *note)

    def grant(self, request: Request, *, always: bool) -> None:
        """Grant a request until the program ends, and with `always` from now on.

        Raises TrustError when that cannot be remembered; it is granted until the program ends in any case."""
        self._once.add((request.file.path, request.needs))
        if always:
            self.store.trust(request.file.path, request.needs)


def _specs(program: Program, known: Specs | None = None) -> Specs:
    specs = Specs(program.models, program.environment)
    if known is not None:
        specs.take(known)
    return specs


def _request(file: SuiteFile, needs: SuiteNeeds, whole: SuiteNeeds, specs: Specs) -> Request:
    """Return the request for a suite, with the code and the environment as they are."""
    code = find_code(needs.folder, needs.code)
    needs = replace(needs, files=code.files)
    whole = replace(whole, files=find_code(whole.folder, whole.code).files)
    environment: Mapping[str, str] | ConfigError
    try:
        environment = specs.environment_at(file.path)
    except ConfigError as error:
        environment = error
    return Request(file, needs, whole, Grant(needs, environment, code))


def needs_of(file: SuiteFile, specs: Specs) -> SuiteNeeds:
    """What a suite that has no errors would start, import, open, call and read, and which models it and the
    `workbench.toml` beside it would have asked. The user's own models need no trust. Without the files of its code.

    Raises ValueError for a suite with errors. Models that cannot be resolved count for nothing: they cannot be asked.
    """
    if file.suite is None:
        raise ValueError(f"{file.path} has problems and cannot be run")
    try:
        of_project = specs.of_project(file.path)
    except ConfigError:
        of_project = ()
    named = (spec_of(name, file.path, specs, by_suite=True) for name in models_named_by(file.suite))
    asked = {model_need(spec) for spec in (*of_project, *named) if spec is not None and needs_asking(spec)}
    asked |= judges_asked(file, file.suite.cases, specs)
    return replace(needs_trust(file.suite, file.path), models=tuple(sorted(asked, key=str)))


def with_asked(needs: SuiteNeeds, asked: Collection[ModelNeed]) -> SuiteNeeds:
    """Return the needs of a suite for runs that would ask some models, whoever named them: in a batch that is resumed,
    that may be the history."""
    return (
        needs
        if set(asked) <= set(needs.models)
        else replace(needs, models=tuple(sorted({*needs.models, *asked}, key=str)))
    )


def models_asked(runs: Iterable[PlannedRun], specs: Specs) -> frozenset[ModelNeed]:
    """Return the models among a suite's needs that runs of it would ask, those that judge too."""
    runs = tuple(runs)
    found = (
        spec_of(run.model, run.file.path, specs, by_suite=run.model_of_suite)
        for run in runs
        if run.own_model is None and run.subject is None
    )
    cases: dict[Path, tuple[SuiteFile, dict[str, Case]]] = {}
    for run in runs:
        cases.setdefault(run.file.path, (run.file, {}))[1][run.case.id] = run.case
    judges = (judges_asked(file, by_id.values(), specs) for file, by_id in cases.values())
    return frozenset(model_need(spec) for spec in found if spec is not None and needs_asking(spec)).union(*judges)


def judges_asked(file: SuiteFile, cases: Iterable[Case], specs: Specs, *, mocks: bool = True) -> frozenset[ModelNeed]:
    """Return the models among the needs of a sound suite that checks of some of its cases, and of mocks, would have
    judge."""
    assert file.suite is not None
    checks = (check for case in cases for check in judged_checks(file.suite, case, mocks=mocks))
    found = set()
    for check in {check.model: check for check in checks}.values():
        try:
            spec = specs.judge_of(file.path, check)
        except ConfigError:
            continue  # it cannot be asked
        if needs_asking(spec):
            found.add(model_need(spec))
    return frozenset(found)


def can_do_with_mocks(file: SuiteFile, asked: Collection[ModelNeed], listings: Listings) -> bool:
    """Return whether runs of a suite that is not trusted can be made without its servers, since their tools are
    remembered. `asked` are the models among its needs that they would ask."""
    suite = file.suite
    if suite is None or not suite.servers or suite.subject is not None or asked:
        return False
    return listings.of(suite, file.path).keys() == {server.name for server in suite.servers}


def grading_needs(file: SuiteFile, cases: Iterable[Case], judges: Iterable[ModelNeed]) -> SuiteNeeds:
    """What of the needs of a sound suite is used when runs of some of its cases are graded: the Python functions that
    their checks call, and the `judges` that are asked. Nothing else of it is started."""
    assert file.suite is not None
    needs = needs_trust(_graded_by(file.suite, tuple(cases)), file.path)
    return SuiteNeeds(needs.folder, python=needs.python, models=tuple(sorted(judges, key=str)))


def _graded_by(suite: Suite, cases: tuple[Case, ...]) -> Suite:
    """What of a suite takes part in grading cases: not the others, nor what starts and answers tools."""
    alone = tuple(case.model_copy(update={"mocks": ()}) for case in cases)
    return suite.model_copy(update={"servers": (), "subject": None, "mocks": (), "cases": alone})


def needs_asking(spec: ModelSpec) -> bool:
    """Return whether somebody else than the user said how a model is reached."""
    return spec.origin in ("suite", "project")


def spec_of(name: str, suite: Path, specs: Specs, *, by_suite: bool) -> ModelSpec | None:
    """Return how a model is reached; `None` when it needs no endpoint, or when that is not known."""
    try:
        return specs.of_model(name, suite, by_suite=by_suite)
    except ConfigError:
        return None


def model_need(spec: ModelSpec) -> ModelNeed:
    """What asking a model needs."""
    return ModelNeed(spec.model, spec.base_url, spec.api_key_env)
