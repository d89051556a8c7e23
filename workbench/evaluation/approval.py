"""What suites need on this machine (programs, code, models, variables), and the user's approval of it.

`Needs` reads everything outside the suites: settings, environment, the code to import. Then the command line or the app
asks the user. The `Approval` keeps everything that was read. Nothing is read again, so runs use exactly the approved
code and settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import PlannedRun
from workbench.engine.suite_secrets import register_run_secrets
from workbench.suite.model import Case, Suite
from workbench.suite.settings import all_model_names, judged_checks
from workbench.suite.suite_file import SuiteFile
from workbench.suite.trust import (
    ModelNeed,
    SuiteNeeds,
    TrustError,
    TrustStore,
    TypedServer,
    agent_need,
    needs_trust,
    split_by_typing,
)
from workbench.tools.grant import Grant
from workbench.tools.listings import StoredListings
from workbench.tools.python_code import hash_code

if TYPE_CHECKING:
    from workbench.checks.combined_kinds import Judged
    from workbench.evaluation.plan import Plan


TypedServers = Mapping[Path, Collection[TypedServer]]
"""The servers typed by the user in this session, by suite path."""

_NOTHING_TYPED: TypedServers = {}


@dataclass(frozen=True)
class TypedPart:
    """The needs of an approval request that do not come from the servers that the user typed.

    `before` and `all_before` are the needs at the time before the user typed the first server: those of the request,
    and those of the whole suite. `others` are the present needs of the request without the typed servers."""

    before: SuiteNeeds
    all_before: SuiteNeeds
    others: SuiteNeeds


@dataclass(frozen=True)
class ApprovalRequest:
    """The needs of one suite, for the user to approve.

    `needs` are the needs to approve now. `all_needs` are the needs of the whole suite. `asked` are the models that
    would be called now. If `must_ask` is false, the suite can be used without approval. `can_run_on_mocks` means that
    the suite can run without its servers. `from_history` means that some needs come from the history instead of the
    suite's file. `typed` is set if the user typed some of the suite's servers."""

    file: SuiteFile
    needs: SuiteNeeds
    all_needs: SuiteNeeds
    grant: Grant
    asked: frozenset[ModelNeed] = frozenset()
    must_ask: bool = True
    can_run_on_mocks: bool = False
    from_history: bool = False
    typed: TypedPart | None = None

    @property
    def needs_to_ask(self) -> SuiteNeeds:
        """The needs that the user is asked about. Servers that the user typed are left out."""
        if self.typed is None:
            return self.needs
        return self.typed.others


@dataclass(frozen=True)
class Approval:
    """What the user approved: the needs of suites by path (`grants`), with the models as they were resolved (`specs`).

    A suite without a grant starts nothing, imports nothing, and calls only models from the user's own settings."""

    specs: ModelSpecs = field(repr=False)
    grants: Mapping[Path, Grant]

    def grant(self, suite: Path) -> Grant | None:
        """Return the approved needs of a suite; `None` if the suite is not trusted."""
        return self.grants.get(suite)

    def model_refusal(self, suite: Path, spec: ModelSpec) -> str | None:
        """Return why a model may not be called for a suite; `None` if the model may be called."""
        if not needs_approval(spec):
            return None
        grant = self.grant(suite)
        if grant is None:
            return f"{suite.name} is not trusted: it would send requests to {spec.base_url}"
        if model_need(spec) not in grant.needs.models:
            return f"the model {spec.name!r} at {spec.base_url} was not approved for {suite.name}"
        return None


@dataclass(frozen=True)
class Needs:
    """The programs, code, models and variables that runs, servers or gradings need.

    `requests` has one approval request for each suite."""

    requests: tuple[ApprovalRequest, ...]
    specs: ModelSpecs = field(repr=False)

    @classmethod
    def of_runs(
        cls,
        runs: Iterable[PlannedRun],
        program: Program,
        known: ModelSpecs | None = None,
        *,
        typed: TypedServers = _NOTHING_TYPED,
    ) -> Needs:
        """Read what runs need: programs, code, models and variables.

        Models that `known` has resolved are not resolved again."""
        runs = tuple(runs)
        specs = _specs(program, known)
        specs.load(runs)
        listings = StoredListings(program.folders.listings)
        by_suite: dict[Path, list[PlannedRun]] = {}
        for run in runs:
            by_suite.setdefault(run.file.path, []).append(run)
        requests = []
        for of_suite in by_suite.values():
            file = of_suite[0].file
            asked = models_to_approve(of_suite, specs)
            stated = needs_of(file, specs)
            whole = with_agents(with_called_models(stated, asked), of_suite)
            runs_any = any(run.case.skip is None for run in of_suite)
            request = replace(
                _request(file, whole, whole, specs, typed),
                asked=asked,
                # If all cases are skipped, nothing of the suite is started, so no approval is needed.
                must_ask=runs_any
                and (whole.beside_models or bool(asked) or _lets_providers_run_tools(whole, of_suite, specs)),
                can_run_on_mocks=can_run_on_mocks(file, asked, listings),
                from_history=file.is_historical or whole != stated,
            )
            requests.append(request)
        # A run reads its API key only when it opens its model. The keys must be registered as secrets earlier, before
        # anything about the runs is written or shown.
        register_run_secrets(program, runs, specs)
        specs.freeze()
        return cls(tuple(requests), specs)

    @classmethod
    def of_servers(cls, files: Iterable[SuiteFile], program: Program, *, typed: TypedServers = _NOTHING_TYPED) -> Needs:
        """Read what valid suites need to start their servers outside a run, for example to list tools."""
        specs = _specs(program)
        requests = []
        for file in files:
            specs.load_judges(file.path, ())
            whole = needs_of(file, specs)
            needs = replace(whole, models=(), provider_tools=())
            request = _request(file, needs, whole, specs, typed)
            starts = bool(needs.commands or needs.urls or needs.modules)
            requests.append(replace(request, must_ask=starts, from_history=file.is_historical))
        specs.freeze()
        return cls(tuple(requests), specs)

    @classmethod
    def of_grading(cls, cases: Iterable[tuple[SuiteFile, Case]], program: Program, *, judges: bool = False) -> Needs:
        """Read what grading needs for cases of valid suites.

        With `judges`, the models that judge answers are included. Suites that need nothing for grading get no
        request."""
        specs = _specs(program)
        by_suite: dict[Path, tuple[SuiteFile, dict[str, Case]]] = {}
        for file, case in cases:
            by_suite.setdefault(file.path, (file, {}))[1][case.id] = case
        requests = []
        for path, (file, by_id) in by_suite.items():
            assert file.suite is not None
            for case in by_id.values():
                specs.load_judges(path, judged_checks(file.suite, case, mocks=False))
            asked = frozenset[ModelNeed]()
            if judges:
                asked = judges_to_approve(file, by_id.values(), specs, mocks=False)
            needs = grading_needs(file, by_id.values(), asked)
            if needs.nothing:
                continue
            request = _request(file, needs, needs_of(file, specs), specs)
            requests.append(replace(request, asked=asked, from_history=file.is_historical))
        specs.freeze()
        return cls(tuple(requests), specs)

    def approved(self, suites: Collection[Path] | None = None) -> Approval:
        """Return an approval of all needs of `suites`, or of every suite if `suites` is `None`."""
        grants = {}
        for request in self.requests:
            if suites is None or request.file.path in suites:
                grants[request.file.path] = request.grant
        return Approval(self.specs, grants)


ApprovalAnswer = Literal["always", "once", "mocks", "no"]
"""The user's answer: grant and remember, grant until the program ends, run on mocks alone, or refuse."""


@dataclass(frozen=True)
class ApprovalQuestion:
    """A question to the user about one request, or about several requests with the same needs.

    `lines` describes the consequences of granting the needs."""

    requests: tuple[ApprovalRequest, ...]
    lines: tuple[str, ...]

    @property
    def first(self) -> ApprovalRequest:
        """The first request. The question shows only this request, because all its requests have the same needs."""
        return self.requests[0]

    @property
    def suites(self) -> frozenset[Path]:
        return frozenset(request.file.path for request in self.requests)


class PendingApproval:
    """The questions to the user about the needs of suites, and the user's answers so far.

    A prompt, a dialog or an option answers the `questions`."""

    def __init__(self, needs: Needs, trust: Trust, *, together: bool = False) -> None:
        """Prepare the questions. With `together`, suites with the same needs share one question."""
        self.refused: tuple[Path, ...] = ()
        """The suites whose needs were refused."""
        self._needs = needs
        self._trust = trust
        self._granted: set[Path] = set()
        alike: dict[tuple[SuiteNeeds, Path | None], list[ApprovalRequest]] = {}
        apart: Path | None
        for request in needs.requests:
            path = request.file.path
            if trust.covers(request):
                self._granted.add(path)
            elif request.must_ask:
                apart = path
                if together:
                    apart = None
                alike.setdefault((request.needs, apart), []).append(request)
        self.questions = tuple(ApprovalQuestion(tuple(group), trust.lines(group[0])) for group in alike.values())

    def answer(self, question: ApprovalQuestion, answer: ApprovalAnswer) -> tuple[str, ...]:
        """Apply an answer to a question. Returns a message for each grant that cannot be stored.

        A grant that cannot be stored still holds until the program ends."""
        problems = []
        for request in question.requests:
            if answer == "no":
                self.refused += (request.file.path,)
            elif answer in ("always", "once"):
                try:
                    self._trust.grant(request, always=answer == "always")
                except TrustError as error:
                    problems.append(str(error))
                self._granted.add(request.file.path)
        return tuple(problems)

    def approval(self) -> Approval:
        """Return the approval of everything that was granted."""
        return self._needs.approved(self._granted)


def needs_of_plan(plan: Plan, typed: TypedServers = _NOTHING_TYPED) -> Needs:
    """Return what a plan's runs need: programs, imports, and endpoints with their keys.

    Settings, environment and the code to import are read here, and not again by the runs."""
    return Needs.of_runs(plan.runs, plan.program, plan.specs, typed=typed)


def servers_as_typed(file: SuiteFile) -> TypedServers:
    """Return all servers of a valid suite, marked as typed by the user.

    Use this function only for a suite that was made from servers that the user typed."""
    assert file.suite is not None
    return {file.path: tuple(map(TypedServer, file.suite.servers))}


class Trust:
    """The needs that the user has already granted, so that no question is necessary.

    With `all_of_them`, the user trusts every suite until the program ends."""

    def __init__(self, store: TrustStore, *, all_of_them: bool = False) -> None:
        self.store = store
        self._all_of_them = all_of_them
        self._once: set[tuple[Path, SuiteNeeds]] = set()

    def covers(self, request: ApprovalRequest) -> bool:
        return self._all_of_them or self._covers(request, request.needs) or self._covers(request, request.all_needs)

    def covers_whole(self, request: ApprovalRequest) -> bool:
        """Return whether all needs of the suite are already granted."""
        return self._all_of_them or self._covers(request, request.all_needs)

    def covers_model(self, need: ModelNeed) -> bool:
        """Return whether the user has approved requests to a model since the program started."""
        return self._all_of_them or any(need in needs.models for _, needs in self._once)

    def _covers(self, request: ApprovalRequest, needs: SuiteNeeds) -> bool:
        path = request.file.path
        if (path, needs) in self._once:
            return True
        if not self.store.is_trusted(path, needs, of_history=request.from_history):
            return False
        # An earlier version stored grants without hashes of files. Such a grant would cover any content, so the hashes
        # are added now.
        with suppress(TrustError):
            self.store.add_files(path, needs)
        return True

    def grant_typed(self, needs: Needs) -> tuple[str, ...]:
        """Permanently grant the requests in which only the servers that the user typed still lack a grant.

        A user who types a server approves it. The grant covers exactly the typed servers, and ends when a command, its
        folder, a variable or the imported code changes. Returns a message for each grant that cannot be stored."""
        problems = []
        for request in needs.requests:
            if not request.must_ask or (granted := self._granted_by_typing(request)) is None:
                continue
            try:
                self.grant(granted, always=True)
            except TrustError as error:
                problems.append(str(error))
        return tuple(problems)

    def _granted_by_typing(self, request: ApprovalRequest) -> ApprovalRequest | None:
        typed = request.typed
        if typed is None or self._covers(request, request.needs) or self._covers(request, request.all_needs):
            return None
        # The whole suite is tried first. A new grant replaces the stored grant, so a grant of only the present needs
        # would withdraw the approval of the suite's models.
        for needs, before in ((request.all_needs, typed.all_before), (request.needs, typed.before)):
            # Before the first server was typed, no server could receive the calls and answers in the suite's file. The
            # user was therefore not asked about them.
            is_new = before.nothing and bool(before.calls or before.answers)
            if not is_new and self._covers(request, before):
                # The earlier needs stay granted, because an undo may bring the earlier servers back.
                self._once.add((request.file.path, before))
                return replace(request, needs=needs)
        return None

    def lines(self, request: ApprovalRequest) -> tuple[str, ...]:
        """Return the consequences of granting a request, one line for each."""
        lines = tuple(request.needs_to_ask.lines(request.asked))
        if changed := self.store.changed_files(request.file.path, request.needs_to_ask):
            lines += (f"the code has changed since it was trusted: {', '.join(changed)}",)
        return lines

    def grant(self, request: ApprovalRequest, *, always: bool) -> None:
        """Grant a request until the program ends, or permanently with `always`.

        Raises TrustError if a permanent grant cannot be stored. Even then, the request is granted until the program
        ends."""
        self._once |= {(request.file.path, request.needs), (request.file.path, request.needs_to_ask)}
        if always:
            self.store.trust(request.file.path, request.needs)


def _specs(program: Program, known: ModelSpecs | None = None) -> ModelSpecs:
    specs = ModelSpecs(program.models, program.environment)
    if known is not None:
        specs.merge(known)
    return specs


def _request(
    file: SuiteFile, needs: SuiteNeeds, all_needs: SuiteNeeds, specs: ModelSpecs, typed: TypedServers = _NOTHING_TYPED
) -> ApprovalRequest:
    code = hash_code(needs.folder, needs.code)
    needs = replace(needs, files=code.files, passed=_passed(needs, specs))
    all_needs = replace(
        all_needs, files=hash_code(all_needs.folder, all_needs.code).files, passed=_passed(all_needs, specs)
    )
    environment: Mapping[str, str] | ConfigError
    try:
        environment = specs.environment_at(file.path)
    except ConfigError as error:
        # The error is stored instead of raised, because only runs that need a variable of this `.env` fail.
        environment = error
    request = ApprovalRequest(file, needs, all_needs, Grant(needs, environment, code))
    # A history may come from another machine, so nothing in it counts as typed here.
    if file.is_historical or file.path not in typed:
        return request
    return replace(request, typed=_typed_part(request, typed[file.path]))


def _typed_part(request: ApprovalRequest, typed: Collection[TypedServer]) -> TypedPart | None:
    assert request.file.suite is not None
    parts = []
    for needs in (request.needs, request.all_needs):
        for part in split_by_typing(needs, request.file.suite, typed):
            files = needs.files
            if part.code != needs.code:
                files = hash_code(part.folder, part.code).files
            # A grant covers the code that was read earlier. If the code has changed since then, the user must be asked.
            if not set(files) <= set(needs.files):
                return None
            parts.append(replace(part, files=files))
    before, others, whole_before, _ = parts
    if before == request.needs:
        return None
    return TypedPart(before, whole_before, others)


def _passed(needs: SuiteNeeds, specs: ModelSpecs) -> tuple[str, ...]:
    if not needs.commands:
        return ()
    return specs.passed_variables()


def needs_of(file: SuiteFile, specs: ModelSpecs) -> SuiteNeeds:
    """Return all needs of a valid suite, without hashes of its code files.

    The needs are programs, modules, files and functions of the suite, and the models defined by the suite and by the
    `workbench.toml` beside it. Models from the user's own settings need no approval. Models that cannot be resolved are
    omitted because they cannot be called. Raises ValueError for a suite with errors."""
    if file.suite is None:
        raise ValueError(f"{file.path} has problems and cannot be run")
    try:
        of_project = specs.of_project(file.path)
    except ConfigError:
        of_project = ()
    named = (spec_of(name, file.path, specs, by_suite=True) for name in all_model_names(file.suite))
    asked = set()
    for spec in (*of_project, *named):
        if spec is not None and spec.problem is None and needs_approval(spec):
            asked.add(model_need(spec))
    asked |= judges_to_approve(file, file.suite.cases, specs)
    asked |= players_to_approve(file, file.suite.cases, specs)
    return replace(needs_trust(file.suite, file.path), models=tuple(sorted(asked, key=str)))


def with_called_models(needs: SuiteNeeds, models: Collection[ModelNeed]) -> SuiteNeeds:
    """Add the models that a suite's runs would call to the suite's needs.

    In a resumed batch, the history may name models that the suite does not name."""
    if set(models) <= set(needs.models):
        return needs
    return replace(needs, models=tuple(sorted({*needs.models, *models}, key=str)))


def with_agents(needs: SuiteNeeds, runs: Iterable[PlannedRun]) -> SuiteNeeds:
    """Add the agents that a suite's runs would start to the suite's needs.

    Agents that the user chose need no approval. A history from another machine may name agents that the suite does not
    name."""
    commands = {*needs.commands}
    for run in runs:
        if run.model_of_suite and run.subject is not None and run.subject.is_agent:
            commands.add(agent_need(run.subject, needs.folder))
    if len(commands) == len(needs.commands):
        return needs
    return replace(needs, commands=tuple(sorted(commands, key=str)))


def models_to_approve(runs: Iterable[PlannedRun], specs: ModelSpecs) -> frozenset[ModelNeed]:
    """Return the models and judges that the runs would call and that the user must approve."""
    found: set[ModelNeed] = set()
    cases: dict[Path, tuple[SuiteFile, dict[str, Case]]] = {}
    asked: set[tuple[str, Path, bool]] = set()
    for run in runs:
        cases.setdefault(run.file.path, (run.file, {}))[1][run.case.id] = run.case
        if run.own_model is None and run.subject is None:
            asked.add((run.model, run.file.path, run.model_of_suite))
    for model, path, by_suite in asked:
        spec = spec_of(model, path, specs, by_suite=by_suite)
        if spec is not None and needs_approval(spec):
            found.add(model_need(spec))
    for file, by_id in cases.values():
        found |= judges_to_approve(file, by_id.values(), specs)
        found |= players_to_approve(file, by_id.values(), specs)
    return frozenset(found)


def _lets_providers_run_tools(needs: SuiteNeeds, runs: Iterable[PlannedRun], specs: ModelSpecs) -> bool:
    if not needs.provider_tools:
        return False
    asking = [run for run in runs if run.own_model is None and run.subject is None]
    found = (spec_of(run.model, run.file.path, specs, by_suite=run.model_of_suite) for run in asking)
    return any(spec is not None for spec in found)


def judges_to_approve(
    file: SuiteFile, cases: Iterable[Case], specs: ModelSpecs, *, mocks: bool = True
) -> frozenset[ModelNeed]:
    """Return the judges that the user must approve before the cases can be graded.

    With `mocks`, judges that choose the answers of mocks are included."""
    assert file.suite is not None
    by_model: dict[str | None, Judged] = {}
    for case in cases:
        by_model |= {check.model: check for check in judged_checks(file.suite, case, mocks=mocks)}
    found = set()
    for check in by_model.values():
        try:
            spec = specs.judge_of(file.path, check)
        except ConfigError:
            # An unresolved judge is never called, so it needs no approval.
            continue
        if needs_approval(spec):
            found.add(model_need(spec))
    return frozenset(found)


def players_to_approve(file: SuiteFile, cases: Iterable[Case], specs: ModelSpecs) -> frozenset[ModelNeed]:
    """Return the models that would simulate the users in the cases and that need approval."""
    found = set()
    for case in cases:
        try:
            spec = specs.user_of(file.path, case)
        except ConfigError:
            continue
        if spec is not None and needs_approval(spec):
            found.add(model_need(spec))
    return frozenset(found)


def can_run_on_mocks(file: SuiteFile, models: Collection[ModelNeed], listings: StoredListings) -> bool:
    """Return whether an untrusted suite can run on mocks, without its servers.

    The model needs definitions of tools, so the list of tools of each server must be stored from an earlier start.
    `models` are the models that the runs would call and that need approval. If there are any, the suite cannot run."""
    suite = file.suite
    if suite is None or not suite.servers or suite.subject is not None or models:
        return False
    # Mocks can answer calls without a server, but requests to the model need the definitions of the tools too.
    return listings.of(suite, file.path).keys() == {server.name for server in suite.servers}


def grading_needs(file: SuiteFile, cases: Iterable[Case], judges: Iterable[ModelNeed]) -> SuiteNeeds:
    """Return what grading needs for cases of a valid suite: Python functions that checks call, and `judges`."""
    assert file.suite is not None
    needs = needs_trust(_graded_by(file.suite, tuple(cases)), file.path)
    return SuiteNeeds(needs.folder, python=needs.python, models=tuple(sorted(judges, key=str)))


def _graded_by(suite: Suite, cases: tuple[Case, ...]) -> Suite:
    alone = tuple(case.model_copy(update={"mocks": ()}) for case in cases)
    return suite.model_copy(update={"servers": (), "subject": None, "mocks": (), "cases": alone})


def needs_approval(spec: ModelSpec) -> bool:
    """Return whether the user must approve a model.

    Approval is needed if the model's address comes from the suite or the project instead of the user's settings."""
    return spec.origin in ("suite", "project")


def spec_of(name: str, suite: Path, specs: ModelSpecs, *, by_suite: bool) -> ModelSpec | None:
    """Return the address and settings of a model; `None` if it needs no endpoint or cannot be resolved.

    `by_suite` means that the suite names the model, instead of the user."""
    try:
        return specs.of_model(name, suite, by_suite=by_suite)
    except ConfigError:
        return None


def model_need(spec: ModelSpec) -> ModelNeed:
    headers = tuple(sorted((name.lower(), value) for name, value in spec.headers.items()))
    query = tuple(sorted(spec.query.items()))
    return ModelNeed(spec.model, spec.base_url, spec.api_key_env, headers, query, spec.key_command, spec.credentials)
