"""Models and agents of the caller, beside models by name."""

from __future__ import annotations

from dataclasses import field

from workbench.api.suites import UsageError
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun
from workbench.evaluation.options import OwnModel
from workbench.providers.function import AgentFunction, CallerLoop, FunctionModel
from workbench.providers.model import Model


@dataclass(frozen=True)
class Agent:
    """An agent of your own, which is evaluated like a model.

    `function` is an async function from an `AgentRequest` to the agent's answer: a text, a call made with
    `workbench.call`, a list of calls, or an `AgentAnswer` with text and calls. It is called once for each round of a
    run; after calls, the next request holds their results from the mocks or the servers of the suite. `name` is the
    agent's name in results and reports, by default that of the function.

    >>> import workbench
    >>> async def clock_agent(request):
    ...     if request.results:
    ...         return request.results[0].content
    ...     return workbench.call("get_time", timezone="Europe/Oslo")
    >>> agent = workbench.Agent(clock_agent, name="v2")
    >>> report = workbench.evaluate("clock.toml", model=agent, cases=["time-in-bergen"])
    >>> report.results[0].model, report.results[0].trajectory.final_answer
    ('v2', 'It is 12:00 in Europe/Oslo.')
    """

    function: AgentFunction
    name: str = ""

    def __post_init__(self) -> None:
        # The class is frozen, and an object that is called in place of a function has no name but that of its class.
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", type(self.function).__name__))


AnyModel = str | Model | Agent | AgentFunction
"""A model to evaluate: its name, a `Model`, an `Agent`, or the async function of an agent."""


def named(model: AnyModel, loop: CallerLoop) -> str | OwnModel:
    if isinstance(model, str):
        return model
    if isinstance(model, Agent):
        return _OwnAgent(model.name, model.function, loop)
    # Before `callable`: the object that implements a model may be callable, too.
    if isinstance(model, Model):
        return _OwnModel(model.name, model)
    if callable(model):
        return named(Agent(model), loop)
    raise UsageError(
        f"a model is a name, a workbench.Model, a workbench.Agent or an async function, not a {type(model).__name__}"
    )


@dataclass(frozen=True)
class _OwnModel:
    """A `Model` of the caller, which all runs share."""

    name: str
    model: Model

    def open(self, planned: PlannedRun) -> Model:
        """Return the model, the same one for every run."""
        return self.model


@dataclass(frozen=True)
class _OwnAgent:
    """An agent of the caller, which runs on the caller's event loop."""

    name: str
    function: AgentFunction
    loop: CallerLoop = field(repr=False)

    def open(self, planned: PlannedRun) -> Model:
        """Return a model that asks the agent for one run."""
        return FunctionModel(self.name, self.function, case=planned.case.id, run=planned.run_id, loop=self.loop)
