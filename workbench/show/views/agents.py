"""Lines about the agents that ran cases: name and version, and the actions that were not graded."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.grading.grade import AgentFacts, RunResult
    from workbench.grading.run_summary import RunSummary
    from workbench.trajectory.events import AgentNoted, AgentStarted, JsonValue

_TOOLS = {"off": "own tools off", "forbid": "own tools forbidden"}

_NOTES = {
    "plan": "plan: ",
    "permission": "permission refused: ",
    "not forwarded": "not forwarded, so not graded: ",
    "message": "",
}


def agent_text(agent: AgentStarted) -> str:
    """Return a line about a started agent: name and version, mode, use of its built-in tools, and command."""
    parts = [agent.title]
    if agent.preset:
        parts.append(f"set up as {agent.preset}")
    if agent.mode:
        parts.append(f"mode {agent.mode}")
    parts.append(tools_text(agent.builtin))
    parts.append(shlex.join(agent.command))
    return one_line(f"agent: {', '.join(parts)}")


def settings_text(settings: Mapping[str, JsonValue]) -> str:
    """Return the settings of an agent in a batch as a line. For the settings of a model, the line is empty.

    A setting of an unexpected type is omitted."""
    if not isinstance(builtin := settings.get("builtin"), str):
        return ""
    parts = []
    if isinstance(command := settings.get("command"), list):
        parts.append(shlex.join(map(str, command)))
    for key, words in (("agent", "set up as"), ("mode", "mode"), ("folder", "with a copy of")):
        if isinstance(value := settings.get(key), str) and value:
            parts.append(f"{words} {value}")
    parts.append(tools_text(builtin))
    if isinstance(names := settings.get("env"), list) and names:
        parts.append(f"with {', '.join(map(str, names))}")
    return one_line(", ".join(parts))


def agents_of(runs: Iterable[RunSummary]) -> dict[str, tuple[str, ...]]:
    """Return the names and versions of agents by model, in the order of their first runs."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        if run.agent is not None:
            found.setdefault(run.model, {})[run.agent] = None
    return {model: tuple(agents) for model, agents in found.items()}


def version_lines(runs: Iterable[RunSummary]) -> Iterator[str]:
    """Yield a line for each agent, with its versions and a note on which of its calls are checked."""
    for model, agents in agents_of(runs).items():
        yield one_line(f"{model} is {' and '.join(agents)}; {FORWARDED_ALONE}")


def note_text(note: AgentNoted) -> str:
    """Return a line about a note that an agent wrote beside its answer."""
    return one_line(f"{_NOTES[note.kind]}{note.text}")


def agent_lines(results: Sequence[RunResult]) -> Iterator[str]:
    """Yield a line for each agent that made runs, with its version and the numbers of ungraded calls and refusals."""
    found: dict[tuple[str, str, str], list[tuple[AgentFacts, RunResult]]] = {}
    for result in results:
        if (agent := result.agent) is not None:
            found.setdefault((result.model, agent.title, agent.builtin), []).append((agent, result))
    for (model, title, builtin), runs in found.items():
        parts = [f"{one_line(model)} is {one_line(title)}, {tools_text(builtin)}"]
        parts.append(FORWARDED_ALONE)
        if _lacks_calls([result for _, result in runs]):
            parts.append("no call arrived, which also happens if an agent does not offer the tools to its model")
        if missing := sum(agent.not_forwarded for agent, _ in runs):
            parts.append(f"{counted(missing, 'call')} not forwarded")
        if refused := sum(agent.refused for agent, _ in runs):
            parts.append(f"{counted(refused, 'permission')} refused")
        if own := sum(agent.own_calls for agent, _ in runs):
            parts.append(f"{counted(own, 'call')} of its own tools")
        yield "; ".join(parts)


def _lacks_calls(runs: Sequence[RunResult]) -> bool:
    """Return whether no run made a call, although a call was expected."""
    if any(run.called for run in runs):
        return False
    return any(issue.kind == "missing call" for run in runs for issue in run.issues)


def tools_text(builtin: str) -> str:
    """Return a phrase on whether the agent may use its built-in tools."""
    return _TOOLS.get(builtin, "own tools allowed")


FORWARDED_ALONE = "valid arguments cover forwarded calls"
