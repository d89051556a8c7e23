"""The agents that Workbench can start through the Agent Client Protocol (ACP), and their names as models."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path
from typing import Literal

from workbench.dataclasses import dataclass, parsed_json

_MAX_DEPTH = 3
"""The number of folders above a program that may hold its package."""

AgentName = Literal["claude-code", "codex", "gemini", "opencode", "qwen", "fast-agent", "vibe"]

BuiltIn = Literal["off", "forbid", "allow"]
"""The handling of an agent's own tools: not offered to its model, offered and refused, or allowed and graded."""

AGENT = "agent:"
"""Begins the name of an agent in a list of models: `agent:codex`."""


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An agent that Workbench can start through the Agent Client Protocol.

    `variables` names the environment variables that the agent receives, such as keys. `mode` is the session mode in
    which the agent asks the client for permissions. It is empty if that is the agent's default mode."""

    name: AgentName
    command: tuple[str, ...]
    install: str
    variables: tuple[str, ...]
    mode: str = ""

    @property
    def login_variables(self) -> tuple[str, ...]:
        """The environment variables with a key, a token or an endpoint. The agent needs one of them to log in."""
        ends = ("_KEY", "_TOKEN", "_CONTENT", "GENERIC_BASE_URL")
        return tuple(name for name in self.variables if name.endswith(ends))


_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")

_KNOWN = (
    KnownAgent(
        "claude-code",
        ("claude-agent-acp",),
        "npm install -g @agentclientprotocol/claude-agent-acp",
        (*_ANTHROPIC, "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_OAUTH_TOKEN"),
        "default",
    ),
    KnownAgent(
        "codex",
        ("codex-acp",),
        "npm install -g @agentclientprotocol/codex-acp @openai/codex",
        (*_OPENAI, "OPENAI_MODEL", "CODEX_API_KEY"),
        "read-only",
    ),
    KnownAgent(
        "gemini",
        ("gemini", "--acp"),
        "npm install -g @google/gemini-cli",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"),
    ),
    KnownAgent(
        "opencode",
        ("opencode", "acp"),
        "npm install -g opencode-ai",
        (*_ANTHROPIC, *_OPENAI, "GEMINI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_CONFIG_CONTENT"),
    ),
    KnownAgent(
        "qwen",
        ("qwen", "--acp"),
        "npm install -g @qwen-code/qwen-code",
        (*_OPENAI, "OPENAI_MODEL"),
        "default",
    ),
    KnownAgent(
        "fast-agent",
        ("fast-agent-acp",),
        "uv tool install fast-agent-mcp",
        (*_ANTHROPIC, *_OPENAI, "GENERIC_API_KEY", "GENERIC_BASE_URL", "FAST_AGENT_MODEL"),
    ),
    KnownAgent(
        "vibe",
        ("vibe-acp",),
        "uv tool install mistral-vibe",
        ("MISTRAL_API_KEY", "MISTRAL_BASE_URL", "MISTRAL_MODEL"),
        "ask",
    ),
)

KNOWN_AGENTS: dict[str, KnownAgent] = {agent.name: agent for agent in _KNOWN}
"""The known agents by their names."""


def is_installed(agent: KnownAgent) -> bool:
    return shutil.which(agent.command[0]) is not None


def installed_version(agent: KnownAgent) -> str:
    """Return the version of an agent from its npm package, or "" if it is unknown."""
    program = shutil.which(agent.command[0])
    if program is None:
        return ""
    # A program that npm installs is a link to a file of its package, such as `dist/index.js`.
    for folder in islice(Path(program).resolve().parents, _MAX_DEPTH):
        try:
            package = parsed_json((folder / "package.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        version = package.get("version") if isinstance(package, dict) else None
        return version if isinstance(version, str) else ""
    return ""


def agent_named(model: str) -> KnownAgent | None:
    """Return the agent with a name such as `agent:codex`, or `None` if there is none."""
    if not model.startswith(AGENT):
        return None
    return KNOWN_AGENTS.get(model.removeprefix(AGENT))


def unknown_agent(model: str) -> str | None:
    """Return an error message if a name begins with `agent:` but names no known agent, otherwise `None`."""
    if not model.startswith(AGENT) or agent_named(model) is not None:
        return None
    return f"there is no agent {model.removeprefix(AGENT)!r}: there are {', '.join(KNOWN_AGENTS)}"
