"""A user's own agent: its function and its name, checked before the first run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType

from workbench.dataclasses import dataclass
from workbench.providers.function import AgentFunction


@dataclass(frozen=True)
class Agent:
    """An agent of your own, which is evaluated like a model.

    `function` is a function from an `AgentRequest` to the agent's answer: a text, a call made with `workbench.call`, a
    list of calls, an `AgentAnswer` with text and calls, or an `AgentRun` with everything that the agent did. If the
    answer has calls, the function is called again with their results, which come from the suite's mocks or servers. A
    text or an `AgentRun` ends the run. An async function runs on the caller's event loop, and a plain function runs in
    a thread. `name` is the agent's name in results and reports. The default is the function's name.

    >>> import workbench
    >>> def clock_agent(request):
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
        # The class is frozen, so the attribute is set with `object.__setattr__`. A callable object is named after its
        # class.
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", type(self.function).__name__))


def as_agent(given: object) -> Agent:
    """Convert a function to an agent; an agent is returned unchanged.

    Raises TypeError for anything else. The message says how to turn the value into an agent."""
    agent = given if isinstance(given, Agent) else None
    function = given if agent is None else agent.function
    if (refusal := _refusal(function)) is not None:
        raise TypeError(refusal)
    assert callable(function)
    return agent or Agent(function)


def _refusal(value: object) -> str | None:
    name = getattr(value, "__name__", type(value).__name__)
    if inspect.iscoroutine(value):
        value.close()  # otherwise Python warns that it was never awaited
        return f"the coroutine {name}(…) is not an agent: pass the function {name} itself, without calling it"
    if inspect.isclass(value):
        return f"the class {name} is not an agent: pass an object of it, such as {name}()"
    if isinstance(value, ModuleType):
        return f"the module {name} is not an agent: pass a function in it"
    if (refusal := _framework_refusal(value, name)) is not None:
        return refusal
    if not callable(value):
        kind = type(value).__name__
        return f"a model is a name, a workbench.Model, a workbench.Agent or a function, not a value of type {kind}"
    if _yields(value) or _yields(type(value).__call__):
        return f"the generator {name} is not an agent: return the whole answer in place of `yield`"
    if not _accepts_request(value):
        return f"{name} is not an agent: it must be callable with one argument, a workbench.AgentRequest"
    return None


_ADAPTERS = {
    ("pydantic_ai", "AbstractAgent"): "pydantic_ai",
    ("pydantic_ai", "Agent"): "pydantic_ai",
    ("agents.agent", "Agent"): "openai_agents",
    ("langgraph", "Pregel"): "langgraph",
    ("langgraph", "StateGraph"): "langgraph",
}
"""The adapters in `workbench.agents` for classes of frameworks, by package or module and name."""

_FRAMEWORKS = (
    "agno",
    "autogen_agentchat",
    "crewai",
    "dspy",
    "haystack",
    "langchain",
    "langchain_core",
    "langgraph",
    "llama_index",
    "semantic_kernel",
    "smolagents",
    "strands",
)
"""Packages whose agents have no adapter. Some can be called, but not with a request of Workbench."""


def _framework_refusal(value: object, name: str) -> str | None:
    # Base classes are searched too, because a user may have derived the class from a framework's class.
    for base in type(value).__mro__:
        package = base.__module__.partition(".")[0]
        adapter = _ADAPTERS.get((package, base.__name__)) or _ADAPTERS.get((base.__module__, base.__name__))
        if adapter is not None:
            return f"{name} is an agent of another framework: pass workbench.agents.{adapter}(…) around it"
    for base in type(value).__mro__:
        package = base.__module__.partition(".")[0]
        if package in _FRAMEWORKS:
            return (
                f"a {type(value).__name__} of {package} has no adapter: pass a function that asks it and returns "
                "workbench.AgentRun(calls=…, answer=…)"
            )
    return None


def _yields(value: object) -> bool:
    return inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value)


def _accepts_request(function: Callable[..., object]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # functions written in C may have no signature
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True
