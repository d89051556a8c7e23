"""Makes one run of a small weather suite on the test's model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.programs import program_of
from workbench.engine.agent_loop import RunRequest, StepFailed, run_case
from workbench.engine.checkpoint import RunControl
from workbench.engine.fork import Fork
from workbench.engine.recorder import Recorder
from workbench.providers.model import DEFAULT_RETRIES, Model, RetryPolicy
from workbench.suite.model import Suite
from workbench.suite.settings import settings_of
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import Event, RunFinished
from workbench.trajectory.trajectory import Trajectory

WEATHER: dict[str, Any] = {
    "format": 1,
    "name": "Weather",
    "system": "You are a weather assistant.",
    "tools": [{"name": "get_weather"}, {"name": "send"}],
    "mocks": [{"tool": "get_weather", "result": "rain in {city}"}],
    "cases": [{"name": "Oslo", "user": "Weather in Oslo?"}],
}
CALL = ("get_weather", {"city": "Oslo"})


@dataclass
class Clock:
    """A clock that advances by `step` seconds at each reading, by default a millisecond."""

    now: float = 100.0
    step: float = 0.001

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@dataclass
class Made:
    """A finished run, its events and its result."""

    trajectory: Trajectory
    events: list[Event] = field(default_factory=list)


async def make(
    model: Model,
    retries: RetryPolicy = DEFAULT_RETRIES,
    clock: Clock | None = None,
    control: RunControl | None = None,
    fork: Fork | None = None,
    step_failed: StepFailed | None = None,
    **case: Any,
) -> Made:
    suite = Suite.model_validate(WEATHER | {"cases": [case if "steps" in case else WEATHER["cases"][0] | case]})
    pool = ServerPool(program_of(Path("unused")))
    tools = await pool.open_toolbox(suite, suite.cases[0], Path("suite.toml"), execute=False, grant=None)
    request = RunRequest(suite.cases[0], settings_of(suite, suite.cases[0]), "scripted", "hash", fork)
    events: list[Event] = []
    recorder = Recorder("run-1", clock or Clock(), events.append)
    trajectory = await run_case(
        request, model, tools, recorder, retries=retries, control=control, step_failed=step_failed
    )
    return Made(trajectory, events)


def finish_of(made: Made) -> RunFinished:
    assert made.trajectory.finish is not None
    assert [event for event in made.events if isinstance(event.payload, RunFinished)] == made.events[-1:]
    return made.trajectory.finish
