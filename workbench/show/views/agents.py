"""Lines about the agents of runs: who they are, and what they did beside graded calls."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.grading.grade import AgentFacts, RunResult
    from workbench.trajectory.events import AgentNoted, AgentStarted

_TOOLS = {"off": "own tools off", "forbid": "own tools forbidden"}

_NOTES = {
    "plan": "plan: ",
    "permission": "permission refused: ",
    "not forwarded": "not forwarded, so not graded: ",
    "message": "",
}


def agent_text(agent: AgentStarted) -> str:
    """Return a line about a started agent: name and version, mode, its own tools, and command."""
    parts = [f"{agent.name} {agent.version}".strip()]
    if agent.preset:
        parts.append(f"set up as {agent.preset}")
    if agent.mode:
        parts.append(f"mode {agent.mode}")
    parts.append(tools_text(agent.builtin))
    parts.append(shlex.join(agent.command))
    return one_line(f"agent: {', '.join(parts)}")


def note_text(note: AgentNoted) -> str:
    """Return a line about an agent's note, which is separate from the agent's answer."""
    return one_line(f"{_NOTES[note.kind]}{note.text}")


def agent_lines(results: Sequence[RunResult]) -> Iterator[str]:
    """Yield a line for each agent among runs: its version, and the numbers of what was not graded."""
    found: dict[tuple[str, str, str, str], list[AgentFacts]] = {}
    for result in results:
        if (agent := result.agent) is not None:
            found.setdefault((result.model, agent.name, agent.version, agent.builtin), []).append(agent)
    for (model, name, version, builtin), runs in found.items():
        parts = [f"{one_line(model)} is {one_line(f'{name} {version}'.strip())}, {tools_text(builtin)}"]
        parts.append(FORWARDED_ALONE)
        if missing := sum(run.not_forwarded for run in runs):
            parts.append(f"{counted(missing, 'call')} not forwarded")
        if refused := sum(run.refused for run in runs):
            parts.append(f"{counted(refused, 'permission')} refused")
        if own := sum(run.own_calls for run in runs):
            parts.append(f"{counted(own, 'call')} of its own tools")
        yield "; ".join(parts)


def tools_text(builtin: str) -> str:
    """Return what happens to the agent's own tools, in words."""
    return _TOOLS.get(builtin, "own tools allowed")


FORWARDED_ALONE = "valid arguments cover forwarded calls"


def forwarded_line(models: Iterable[str]) -> str | None:
    """Return a line on the valid arguments of agents, or `None` if no model is an agent."""
    from workbench.config.agents import AGENT  # on use: reports on runs need none of it

    agents = [one_line(model) for model in models if model.startswith(AGENT)]
    if not agents:
        return None
    return f"{', '.join(agents)}: {FORWARDED_ALONE}"
