"""The models and agents that `evaluate` accepts: model names, and objects of the caller."""

from __future__ import annotations

from dataclasses import field

from workbench.api.suites import UsageError
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun
from workbench.evaluation.options import OwnModel
from workbench.providers.function import AgentFunction, CallerLoop, FunctionModel
from workbench.providers.model import Model
from workbench.providers.own_agent import Agent, as_agent

AnyModel = str | Model | Agent | AgentFunction
"""A model to evaluate: a name, a `Model`, an `Agent`, or an agent's function."""


def named(model: AnyModel, loop: CallerLoop) -> str | OwnModel:
    if isinstance(model, str):
        return model
    # Models are checked before agents, because a model may also be callable. Classes are excluded, because they have
    # the methods of their objects.
    if isinstance(model, Model) and not isinstance(model, type):
        return _OwnModel(model.name, model)
    try:
        agent = as_agent(model)
    except TypeError as error:
        raise UsageError(str(error)) from None
    return _OwnAgent(agent.name, agent.function, loop)


@dataclass(frozen=True)
class _OwnModel:
    name: str
    model: Model

    def open(self, planned: PlannedRun) -> Model:
        return self.model


@dataclass(frozen=True)
class _OwnAgent:
    """An agent of the caller, which runs on the caller's event loop."""

    name: str
    function: AgentFunction
    loop: CallerLoop = field(repr=False)

    def open(self, planned: PlannedRun) -> Model:
        return FunctionModel(self.name, self.function, case=planned.case.id, run=planned.run_id, loop=self.loop)
