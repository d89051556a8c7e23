"""Who judges when runs that are over are graded again: what is known already, and a model only if it is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from workbench.batches.approval import Approval
from workbench.batches.judgement_cache import JudgementCache
from workbench.batches.judging import Asking, Questions, RunJudge
from workbench.batches.plan import PlannedRun
from workbench.config.models import ModelSpec
from workbench.config.program import Program
from workbench.grading.judgements import Judgement
from workbench.providers.model import Model, ModelError
from workbench.providers.registry import Endpoints


class RegradingJudges:
    """Who judges recorded runs, with what was approved. The model called `chosen` is asked about what is not known, and
    so is any other that a check names; without it, none is. To be used on one event loop, and closed there."""

    def __init__(self, program: Program, approval: Approval, chosen: str | None = None) -> None:
        self.approval = approval
        self._program = program
        self._chosen = chosen
        self._cache = JudgementCache(program.folders.judgements, program.secrets)
        self._endpoints = Endpoints(program.secrets)
        self._under_way: Questions = {}

    @property
    def asks(self) -> bool:
        """Whether a model may be asked."""
        return self._chosen is not None

    def of(self, planned: PlannedRun, recorded: Iterable[Judgement]) -> RunJudge:
        """The judge of one run, with the judgements of its recording."""
        path, specs = planned.file.path, self.approval.specs

        def open_model(spec: ModelSpec) -> Model:
            why_not = self.approval.why_not_asked(path, spec)
            if why_not is not None:
                raise ModelError(why_not)
            return self._endpoints.open(spec, specs.environment_at(path))

        asking = Asking(open_model, under_way=self._under_way) if self.asks else None
        return RunJudge(partial(specs.judge_of, path), self._cache, asking, recorded=recorded, chosen=self._chosen)

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoints.close()
