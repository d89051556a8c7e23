"""Judges of runs: what is known of a value is used again, what is not is asked of the model that judges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from workbench.batches.cost import cost_of
from workbench.batches.judgement_cache import JudgementCache
from workbench.checks.evaluate import CheckVerdict
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.engine.judging import JUDGE_TIMEOUT_S, JudgeError, ask_judge
from workbench.engine.retries import DEFAULT_RETRIES, RetryPolicy
from workbench.grading.errors import JudgementNeededError
from workbench.grading.judgements import NOBODY_ASKED, Judgement, JudgeUse, KnownJudgements, judged_value, unjudged
from workbench.providers.model import Model, ModelError
from workbench.suite.checks import Judged
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import Trajectory

NOT_ASKED = "no judge was asked about this value, and none is asked here: give --judge MODEL to have it judged"


@dataclass(frozen=True)
class Asking:
    """How judges are asked. `open_model` raises ModelError and ConfigError. What is being asked is asked once: whoever
    wants to know the same waits. To be used on one event loop."""

    open_model: Callable[[ModelSpec], Model]
    secrets: Secrets = NO_SECRETS
    retries: RetryPolicy = DEFAULT_RETRIES
    timeout_s: float = JUDGE_TIMEOUT_S
    under_way: dict[tuple[str, str, str], asyncio.Lock] = field(default_factory=dict)


class RunJudge:
    """The judge of one run. What it said is kept in `judgements`, what asking it took in `use`.

    `spec_of` says which model judges a check and raises ConfigError. `recorded` are judgements of an earlier grading of
    the run, of which `chosen` takes those of one model only. Without `asking` nobody is asked.
    """

    def __init__(
        self,
        spec_of: Callable[[Judged], ModelSpec],
        cache: JudgementCache,
        asking: Asking | None = None,
        *,
        recorded: Iterable[Judgement] = (),
        chosen: str | None = None,
    ) -> None:
        self.use: JudgeUse = NOBODY_ASKED
        self._spec_of = spec_of
        self._cache = cache
        self._asking = asking
        self._recorded = KnownJudgements(recorded)
        self._chosen = chosen
        self._said: dict[tuple[str | None, str, str], Judgement | str] = {}
        """The judgement of each check's model, criteria and value, or why there is none."""

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """All that were used so far, each once."""
        return tuple(dict.fromkeys(said for said in self._said.values() if isinstance(said, Judgement)))

    def known(self, check: Judged, value: JsonValue) -> CheckVerdict:
        """What is known of a value, for `Outside.judge`; may be called on any thread.

        Raises JudgementNeededError when it is to be asked for, CheckError when there is no judgement to be had.
        """
        text = judged_value(value)
        key = (check.model, check.judged, text)
        said = self._said.get(key) or self._recorded.of(check, text, self._chosen)
        try:
            said = said or self._remembered(self._spec_of(check), check, text)
        except ConfigError as error:
            said = str(error) if self._asking is not None else NOT_ASKED
        if said is None and self._asking is not None:
            raise JudgementNeededError(check, value)
        self._said[key] = said = said or NOT_ASKED
        if isinstance(said, Judgement):
            return said.verdict
        raise unjudged(check, said)

    async def ask(self, check: Judged, value: JsonValue) -> None:
        """Have a value judged that is not known; afterwards it is, or why it cannot be."""
        text = judged_value(value)
        self._said[check.model, check.judged, text] = await self._asked(check, text)

    async def judge(self, check: Judged, value: JsonValue) -> CheckVerdict:
        """What is known of a value, else what a judge says now; raises CheckError where that is impossible."""
        try:
            return self.known(check, value)
        except JudgementNeededError:
            await self.ask(check, value)
            return self.known(check, value)

    def _remembered(self, spec: ModelSpec, check: Judged, text: str) -> Judgement | None:
        found = self._cache.find(spec, check.judged, text)
        return Judgement(spec.name, check.judged, text, *found) if found is not None else None

    async def _asked(self, check: Judged, text: str) -> Judgement | str:
        asking = self._asking
        assert asking is not None, "known() asks for nothing where nobody is asked"
        try:
            spec = self._spec_of(check)
            lock = asking.under_way.setdefault((spec.name, check.judged, text), asyncio.Lock())
            async with lock:
                remembered = self._remembered(spec, check, text)
                if remembered is not None:
                    return remembered
                ruling = await ask_judge(
                    asking.open_model(spec),
                    check.judged,
                    text,
                    secrets=asking.secrets,
                    retries=asking.retries,
                    timeout_s=asking.timeout_s,
                )
                self._count(ruling.asked, spec)
                self._cache.keep(spec, check.judged, text, ruling.holds, ruling.rationale)
        except JudgeError as error:
            self._count(error.asked, spec)
            return str(error)
        except (ConfigError, ModelError) as error:
            return str(error)
        return Judgement(spec.name, check.judged, text, ruling.holds, ruling.rationale)

    def _count(self, asked: Trajectory, spec: ModelSpec) -> None:
        self.use += JudgeUse(1, asked.usage, cost_of(asked, spec.price))
