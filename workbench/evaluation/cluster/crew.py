"""The workers of a cluster that make the runs of one plan: asked first whether they can, then kept at it."""

from __future__ import annotations

import asyncio
import importlib
import pickle
from collections.abc import Callable, Iterable
from secrets import token_hex
from typing import Any

from workbench.batches.known_secrets import written_out
from workbench.batches.plan import PlannedRun
from workbench.engine.retries import RetryPolicy
from workbench.evaluation.approval import Approval
from workbench.evaluation.cluster.dask import CLOSE_TIMEOUT_S, DaskCluster, UnreachableError
from workbench.evaluation.cluster.messages import SILENCE_S, Errand, FromWorker, Portion, RunRef, SuiteText, ToWorker
from workbench.evaluation.cluster.vouching import approved_things, samples_of
from workbench.evaluation.cluster_address import cluster_address
from workbench.evaluation.plan import ClusterError, GivenUpError, Plan
from workbench.grading.packed import pickled
from workbench.suite.disk import absolute

MAX_SAID_LINES = 8
"""How many workers are quoted with what is wrong."""
ENLIST_TIMEOUT_S = 120.0
ASK_WITHIN_S = 30.0
"""How long is waited for the first worker that can be asked: those that were there may all have ended just now."""
ASK_AGAIN_S = 0.5
GIVEN_UP_S = 0.1
"""How often is looked whether nobody waits any more."""
END_TIMEOUT_S = 3.0
"""How long a worker may take to close servers and connections."""


class Crew:
    """What is said to workers and heard of them. Use it on one event loop."""

    def __init__(self, plan: Plan, approval: Approval, retries: RetryPolicy, *, history: bool, events: bool) -> None:
        address = cluster_address(plan.cluster or "")
        self.cluster = DaskCluster(address)
        self.is_local = address.is_local
        self.samples = samples_of(plan.runs)
        self._suites = {file.path: place for place, file in enumerate(plan.files)}
        self._errand = Errand(
            token=token_hex(8),
            suites=tuple(SuiteText(absolute(file.path), file.text, file.hash, file.as_then) for file in plan.files),
            samples=tuple(map(self.ref, self.samples)),
            granted=frozenset(self._suites[path] for path in approval.grants if path in self._suites),
            approved=frozenset(approved_things(approval, self.samples)),
            models=plan.program.models.options,
            execute=plan.execution.wanted,
            execute_all=plan.execution.all_tools,
            concurrency=plan.concurrency,
            own_pace=plan.own_pace,
            judge_anew=plan.judge_anew,
            retries=retries,
            history=history,
            events=events,
            is_ours=address.is_local,
        )
        self._secrets = plan.program.secrets
        self._plan = plan

    def ref(self, run: PlannedRun) -> RunRef:
        """What stands for a run on its way."""
        return RunRef.of(run, self._suites[run.file.path])

    async def open_unless(self, given_up: Callable[[], bool]) -> frozenset[str]:
        """`open`, until nobody waits for it any more: raises GivenUpError then."""
        opening = asyncio.create_task(self.open())
        while not (await asyncio.wait([opening], timeout=GIVEN_UP_S))[0]:
            if given_up():
                opening.cancel()
                await asyncio.wait([opening], timeout=CLOSE_TIMEOUT_S)
                raise GivenUpError("interrupted")
        return await opening

    async def open(self) -> frozenset[str]:
        """Start or reach the cluster, and ask all workers whether they can make the runs. Returns their addresses.
        Raises ClusterError."""
        for file in self._plan.files:
            if (where := next(written_out(file, self._secrets), None)) is not None:
                raise ClusterError(f"a secret would travel: {where}")
        self._packed = pickled(self._errand)
        if self._secrets.finder.may_be_in(_as_text(self._packed)):
            raise ClusterError(
                "a secret would travel with the options of this batch: name it by its variable, as in --api-key-env"
            )
        await self.cluster.open()
        try:
            answers = await self._answers()
        except UnreachableError as error:
            await self.cluster.close()
            raise ClusterError(f"the cluster cannot be used: {error}") from error
        except BaseException:
            await self.cluster.close()
            raise
        problems = [
            f"worker {worker}: {why}"
            for worker, reasons in sorted(answers.items())
            for why in (reasons if isinstance(reasons, tuple) else ())
        ]
        enlisted = frozenset(worker for worker, reasons in answers.items() if reasons == ())
        if not problems and not enlisted:
            problems = [f"worker {worker} cannot be asked: {why}" for worker, why in answers.items()]
            problems = problems or ["no worker of the cluster is left: each ended before it could be asked"]
        if problems:
            await self.close(enlisted)
            more = len(problems) - MAX_SAID_LINES
            raise ClusterError(*problems[:MAX_SAID_LINES], *([f"and {more} more"] if more > 0 else []))
        return enlisted

    async def _answers(self) -> dict[str, tuple[str, ...] | UnreachableError]:
        """What each worker says; all are asked again as long as every one of them ends meanwhile."""
        until_s = asyncio.get_running_loop().time() + ASK_WITHIN_S
        while True:
            workers = await self.cluster.workers()
            answers = dict(zip(workers, await asyncio.gather(*map(self._asked, workers)), strict=True))
            answered = any(isinstance(reasons, tuple) for reasons in answers.values())
            if answered or asyncio.get_running_loop().time() > until_s:
                return answers
            await asyncio.sleep(ASK_AGAIN_S)

    async def _asked(self, worker: str) -> tuple[str, ...] | UnreachableError:
        try:
            return await self.enlist(worker)
        except UnreachableError as error:
            return error  # it may have ended just now

    async def enlist(self, worker: str) -> tuple[str, ...]:
        """Ask a worker whether it can make the runs. Returns why not. Raises UnreachableError."""
        why_not = await self.cluster.why_not(worker)
        if why_not is not None:
            return (why_not,)
        reasons: tuple[str, ...] = await self.cluster.call(
            worker, _there("enlist"), self._packed, timeout_s=ENLIST_TIMEOUT_S
        )
        return reasons

    async def exchange(
        self, worker: str, seen: int, told: Iterable[ToWorker] = ()
    ) -> tuple[tuple[int, FromWorker], ...] | None:
        """Tell a worker something, and hear what it said after the message `seen`; `None` where it no longer works."""
        answer: bytes | None = await self.cluster.call(
            worker, _there("exchange"), self._errand.token, seen, pickled(tuple(told)), timeout_s=SILENCE_S
        )
        if answer is None:
            return None
        messages: tuple[tuple[int, FromWorker], ...] = pickle.loads(answer)
        return messages

    def submit(self, worker: str, portion: Portion) -> Any:
        """Give a worker a portion: a task of dask."""
        token = self._errand.token
        key = f"workbench-{token}-{portion.number}"
        return self.cluster.submit(worker, key, _there("make_portion"), token, pickled(portion))

    async def close(self, workers: Iterable[str]) -> None:
        """Have workers stop, and leave the cluster."""
        token = self._errand.token
        last = (self.cluster.call(worker, _there("dismiss"), token, timeout_s=END_TIMEOUT_S) for worker in workers)
        await asyncio.gather(*last, return_exceptions=True)
        await self.cluster.close()


def _there(function: str) -> Callable[..., Any]:
    """A function of a worker, which dask knows by its name. Nothing here uses its module otherwise."""
    called: Callable[..., Any] = getattr(importlib.import_module("workbench.evaluation.cluster_worker"), function)
    return called


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
