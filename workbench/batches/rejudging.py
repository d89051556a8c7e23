"""Who judges when runs that are over are graded again: what is known already, and a model only if it is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from workbench.batches.judgement_cache import JudgementCache
from workbench.batches.judging import Asking, Questions, RunJudge
from workbench.batches.plan import PlannedRun
from workbench.batches.trusting import judge_for, needs_asking
from workbench.config.models import ModelSpec
from workbench.config.program import Program
from workbench.grading.judgements import Judgement
from workbench.providers.model import Model, ModelError
from workbench.providers.registry import Endpoints


class RegradingJudges:
    """Who judges recorded runs. The model called `chosen` is asked about what is not known, and so is any other that a
    check names; without it, none is. To be used on one event loop, and closed there."""

    def __init__(self, program: Program, chosen: str | None = None) -> None:
        self._program = program
        self._chosen = chosen
        self._cache = JudgementCache(program.folders.judgements, program.secrets)
        self._endpoints = Endpoints(program.secrets)
        self._under_way: Questions = {}

    @property
    def asks(self) -> bool:
        """Whether a model may be asked."""
        return self._chosen is not None

    def of(self, planned: PlannedRun, recorded: Iterable[Judgement], *, trusted: bool) -> RunJudge:
        """The judge of one run, with the judgements of its recording."""
        program, folder = self._program, planned.file.path.parent

        def open_model(spec: ModelSpec) -> Model:
            if needs_asking(spec) and not trusted:
                raise ModelError(f"{planned.file.path.name} is not trusted: it would have {spec.base_url} asked")
            return self._endpoints.open(spec, program.environment.of(folder))

        asking = Asking(open_model, program.secrets, under_way=self._under_way) if self.asks else None
        return RunJudge(
            partial(judge_for, folder=folder, models=program.models),
            self._cache,
            asking,
            recorded=recorded,
            chosen=self._chosen,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoints.close()
