"""What runs, gradings and servers need of this machine, and what a person allowed of it.

A proposal reads everything that lies outside the suites: settings, environment, the code that would be imported. Then
a person is asked, by the command line or the app, and the approval holds what was read. Nothing of it is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.batches.known_secrets import learn_secrets_of_runs
from workbench.batches.plan import PlannedRun
from workbench.batches.specs import Specs
from workbench.batches.trusting import (
    can_do_with_mocks,
    grading_needs,
    judges_asked,
    model_need,
    models_asked,
    needs_asking,
    needs_of,
    with_asked,
)
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.suite.judged import judged_checks
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case
from workbench.suite.trust import ModelNeed, Needs, TrustError, TrustStore
from workbench.tools.code_files import find_code
from workbench.tools.grant import Grant
from workbench.tools.listings import Listings


@dataclass(frozen=True)
class Request:
    """What one suite would use. `needs` is what is asked about, `whole` all that the suite needs, of which the former
    may be a part; `asked` are the models that would be asked now. Without `must_ask` the suite can be used as an
    untrusted one. `mocks` says that mocks will do. `of_history`: not all of it is what the suite's file says."""

    file: SuiteFile
    needs: Needs
    whole: Needs
    grant: Grant
    asked: frozenset[ModelNeed] = frozenset()
    must_ask: bool = True
    mocks: bool = False
    of_history: bool = False


@dataclass(frozen=True)
class Approval:
    """What may be used: how models are reached, and the grants of suites by their paths. A suite without a grant starts
    nothing, imports nothing, and has nobody asked but the user's own models."""

    specs: Specs = field(repr=False)
    grants: Mapping[Path, Grant]

    def grant(self, suite: Path) -> Grant | None:
        """What a suite may use, `None` for one that is not trusted."""
        return self.grants.get(suite)

    def why_not_asked(self, suite: Path, spec: ModelSpec) -> str | None:
        """Why a model may not be asked for a suite; `None` where it may."""
        if not needs_asking(spec):
            return None
        grant = self.grant(suite)
        if grant is None:
            return f"{suite.name} is not trusted: it would have {spec.base_url} asked"
        if model_need(spec) not in grant.needs.models:
            return f"the model {spec.name!r} at {spec.base_url} is not among those that were approved for {suite.name}"
        return None


@dataclass(frozen=True)
class Proposal:
    """What is about to be used, as it was read: one request for each suite."""

    requests: tuple[Request, ...]
    specs: Specs = field(repr=False)

    @classmethod
    def of_runs(cls, runs: Iterable[PlannedRun], program: Program, known: Specs | None = None) -> Proposal:
        """What runs would use. `known` has been found out about them already, and is not read again."""
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
                    must_ask=whole.beside_models or bool(asked),
                    mocks=can_do_with_mocks(file, asked, listings),
                    of_history=file.as_then or whole != stated,
                )
            )
        # Before anything of the runs is written or shown: each learns the key of its model only when it opens that.
        learn_secrets_of_runs(program, runs, specs)
        specs.seal()
        return cls(tuple(requests), specs)

    @classmethod
    def of_servers(cls, files: Iterable[SuiteFile], program: Program) -> Proposal:
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
    def of_grading(cls, cases: Iterable[tuple[SuiteFile, Case]], program: Program, *, judges: bool = False) -> Proposal:
        """What grading runs of cases of sound suites would use; with `judges`, models are asked. Suites that need
        nothing for it have no request."""
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
        """The approval of some suites, of all without `suites`."""
        granted = (request for request in self.requests if suites is None or request.file.path in suites)
        return Approval(self.specs, {request.file.path: request.grant for request in granted})


def joined(approvals: Iterable[Approval], program: Program) -> Approval:
    """The approvals of different suites as one."""
    specs = _specs(program)
    grants: dict[Path, Grant] = {}
    for approval in approvals:
        specs.take(approval.specs)
        grants |= approval.grants
    specs.seal()
    return Approval(specs, grants)


class Trust:
    """Says which requests are granted without a question, and remembers the answers. `all_of_them`: the user has said
    that every suite is trusted, until the program ends."""

    def __init__(self, store: TrustStore, *, all_of_them: bool = False) -> None:
        self.store = store
        self._all_of_them = all_of_them
        self._once: set[tuple[Path, Needs]] = set()

    def covers(self, request: Request) -> bool:
        """Whether a request is granted already."""
        return self._all_of_them or self._covers(request, request.needs) or self._covers(request, request.whole)

    def covers_whole(self, request: Request) -> bool:
        """Whether everything that the suite needs is granted already."""
        return self._all_of_them or self._covers(request, request.whole)

    def _covers(self, request: Request, needs: Needs) -> bool:
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
        """Grant a request until the program ends, and with `always` from now on. Raises TrustError when that cannot be
        remembered; it is granted until the program ends in any case."""
        self._once.add((request.file.path, request.needs))
        if always:
            self.store.trust(request.file.path, request.needs)


def _specs(program: Program, known: Specs | None = None) -> Specs:
    specs = Specs(program.models, program.environment)
    if known is not None:
        specs.take(known)
    return specs


def _request(file: SuiteFile, needs: Needs, whole: Needs, specs: Specs) -> Request:
    """The request for a suite, with the code and the environment as they are."""
    code = find_code(needs.folder, needs.code)
    needs = replace(needs, files=code.files)
    whole = replace(whole, files=find_code(whole.folder, whole.code).files)
    environment: Mapping[str, str] | ConfigError
    try:
        environment = specs.environment_at(file.path)
    except ConfigError as error:
        environment = error
    return Request(file, needs, whole, Grant(needs, environment, code))
