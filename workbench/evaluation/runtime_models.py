"""How the runs of a runtime reach their models and judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.batches.events import BatchListener, EndpointSaid, JudgeAsked, RequestPutOff
from workbench.batches.judgement_cache import JudgementCache
from workbench.batches.judging import Asking, Questions, RunJudge
from workbench.batches.plan import PlannedRun
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.engine.retries import RetryPolicy
from workbench.evaluation.approval import Approval
from workbench.providers.built_in_models import BuiltInModels
from workbench.providers.model import Model, ModelError, ModelWithNotices
from workbench.suite.trust import needs_trust
from workbench.trajectory.events import RetryScheduled

if TYPE_CHECKING:
    from workbench.providers.http.endpoints import Endpoints
    from workbench.providers.http.leases import Leases


class RuntimeModels:
    """Opens models and judges, with one connection to each endpoint and one memory of judgements for all batches. The
    options are those of `Runtime`. To be used on the engine's thread."""

    def __init__(
        self,
        program: Program,
        listener: BatchListener,
        retries: RetryPolicy,
        *,
        starting: Callable[[str], AbstractContextManager[None]],
        judge_anew: bool,
        pace_ms: float,
        own_pace: bool,
        share: int,
        on_hold: Callable[[str, str, float], object],
        leases: Leases | None,
    ) -> None:
        self._secrets = program.secrets
        self._listener = listener
        self._retries = retries
        self._starting = starting
        self._pace_ms, self._own_pace = pace_ms, own_pace
        self._share, self._on_hold, self._leases = share, on_hold, leases
        self._judgements = JudgementCache(program.folders.judgements, program.secrets, anew=judge_anew)
        self._connected = False

    def opening(self, approval: Approval, concurrency: int) -> Callable[[PlannedRun], Model]:
        """Return what opens the model of each run of a batch."""
        built_in = BuiltInModels(pace_ms=self._pace_ms, own_pace=self._own_pace)
        return lambda planned: self._open(planned, approval, concurrency, built_in)

    def judges(self, approval: Approval, concurrency: int) -> Callable[[PlannedRun], RunJudge]:
        """Return what gives each run of a batch its judge."""
        specs = approval.specs
        under_way: Questions = {}

        def judge_of(planned: PlannedRun) -> RunJudge:
            def open_model(spec: ModelSpec) -> Model:
                return self._open_endpoint(
                    planned, spec, specs.environment_at(planned.file.path), approval, concurrency
                )

            def tell(judge: str, values: int, again: RetryScheduled | None) -> None:
                self._listener(JudgeAsked(planned.run_id, judge, values, again))

            asking = Asking(open_model, self._retries, under_way=under_way, tell=tell)
            return RunJudge(partial(specs.judge_of, planned.file.path), self._judgements, asking)

        return judge_of

    def hold(self, base_url: str, model: str, seconds: float) -> None:
        """Ask a model nothing for this time."""
        self._endpoints.hold(base_url, model, seconds)

    async def close(self) -> None:
        """Close all connections."""
        if self._connected:
            await self._endpoints.close()

    @cached_property
    def _endpoints(self) -> Endpoints:
        from workbench.providers.http.endpoints import Endpoints  # on use: built-in models need no HTTP

        self._connected = True
        return Endpoints(
            self._secrets,
            starting=self._starting,
            on_hold=self._on_hold,
            leases=self._leases,
            share=self._share,
            tell=lambda text: self._listener(EndpointSaid(text)),
        )

    def _open(self, planned: PlannedRun, approval: Approval, concurrency: int, built_in: BuiltInModels) -> Model:
        if planned.own_model is not None:
            return planned.own_model(planned)
        specs = approval.specs
        environment: Mapping[str, str] = {}
        unread: ConfigError | None = None
        try:
            # For every model: what is secret in a `.env` must be known before anything is said.
            environment = specs.environment_at(planned.file.path)
        except ConfigError as error:
            unread = error
        try:
            spec = specs.of(planned)
        except ConfigError as error:
            raise ModelError(str(error)) from error
        if unread is not None and (spec is not None or needs_trust(planned.suite, planned.file.path).environment):
            raise ModelError(str(unread)) from unread
        if spec is None:
            folder = planned.file.path.parent if planned.model_of_suite else Path()
            model = built_in.open(planned.asked_model, folder, planned.case.id)
            return ModelWithNotices(model, unread.problems) if unread is not None else model

        def put_off(wait_s: float) -> None:
            self._listener(RequestPutOff(planned.run_id, wait_s))

        return self._open_endpoint(planned, spec, environment, approval, concurrency, put_off)

    def _open_endpoint(
        self,
        planned: PlannedRun,
        spec: ModelSpec,
        environment: Mapping[str, str],
        approval: Approval,
        concurrency: int,
        put_off: Callable[[float], object] | None = None,
    ) -> Model:
        why_not = approval.why_not_asked(planned.file.path, spec)
        if why_not is not None:
            raise ModelError(why_not)
        limits = spec.shared_by(self._share, concurrency)
        return self._endpoints.open(limits, environment, put_off)
