"""The setup of an agent for one run: home, working folder, environment, configuration files and session."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

import tomlkit

from workbench.config.agents import KNOWN_AGENTS, BuiltIn
from workbench.config.secrets import Secrets, names_a_secret
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.engine.agents.connection import AgentError
from workbench.limits import MAX_SOCKET_PATH_BYTES
from workbench.suite.model import Subject
from workbench.tools.connection import MissingVariableError, expand_variables, inherited_variables

_SOCKET_BYTES = 8
"""The bytes that the socket's name adds to the path of a run's folder."""

_LOCALE = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")


@dataclass(frozen=True, slots=True)
class RunFolders:
    """The temporary folders of one run: the agent's home, its working folder and the socket's folder."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def working_folder(self) -> Path:
        return self.root / "work"

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def create_folders(copied: Path | None) -> RunFolders:
    """Create the temporary folders of a run.

    The working folder is empty, or a copy of `copied`. Raises OSError and shutil.Error."""
    root = Path(tempfile.mkdtemp(prefix="wb-"))
    if len(str(root).encode()) + _SOCKET_BYTES > MAX_SOCKET_PATH_BYTES:
        root.rmdir()
        root = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))  # this creates a new folder with mode 0700
    folders = RunFolders(root)
    try:
        folders.home.mkdir()
        if copied is None:
            folders.working_folder.mkdir()
        else:
            shutil.copytree(copied, folders.working_folder, symlinks=True)
    except BaseException:
        folders.remove()
        raise
    return folders


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """The properties of a run that determine its agent's setup.

    `servers` are the names of the servers, and `folder` is the suite's folder."""

    subject: Subject
    system: str | None
    servers: tuple[str, ...]
    folder: Path

    @property
    def builtin(self) -> BuiltIn:
        return self.subject.builtin


@dataclass
class Setup:
    """The command, environment and session metadata (`_meta`) with which an agent is started.

    `notes` name the parts that could not be set up."""

    command: tuple[str, ...]
    environment: dict[str, str]
    meta: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def set_up(
    request: SetupRequest, home: Path, environment: Mapping[str, str], passed: Sequence[str], secrets: Secrets
) -> Setup:
    """Write the configuration files of an agent into its home, and return its setup.

    `passed` names the variables that the agent inherits from `environment`. Raises OSError, and AgentError if the agent
    does not support a feature that the run needs."""
    subject = request.subject
    who = f"the agent {subject.called}"
    variables = inherited_variables(environment, passed, secrets)
    for name in _LOCALE:
        if name in environment:
            variables[name] = environment[name]
    known = KNOWN_AGENTS.get(subject.agent or "")
    for name in () if known is None else known.variables:
        if name in environment:
            variables[name] = environment[name]
            _learn(name, environment[name], secrets)
    try:
        for name, value in subject.env.items():
            variables[name] = expand_variables(value, environment, secrets)
    except MissingVariableError as error:
        raise AgentError(f"{who} is not started: the variable {error.name} is not set") from error
    variables |= _places(home)
    command = subject.started_command
    assert command is not None
    setup = Setup(_with_files(command, request.folder), variables)
    if subject.agent is None:
        _set_up_unknown(request, setup)
    else:
        _PRESETS[subject.agent](request, home, setup)
    return setup


def _learn(variable: str, value: str, secrets: Secrets) -> None:
    """Register the secrets in the value of an environment variable of the agent, so that they are redacted.

    A secret is the whole value of a variable such as `API_KEY`, a password in a URL, or a key in JSON settings."""
    if names_a_secret(variable):
        secrets.add(variable, value)
    secrets.add_passwords(variable, value)
    if value.startswith("{"):
        # Invalid JSON raises no error here, because the agent or its preset refuses it later.
        with suppress(ValueError):
            _register_secret_settings(variable, "", parsed_json(value), secrets)


def _register_secret_settings(variable: str, key: str, value: object, secrets: Secrets) -> None:
    match value:
        case dict():
            for name, inner in value.items():
                _register_secret_settings(variable, name, inner, secrets)
        case list():
            for inner in value:
                _register_secret_settings(variable, key, inner, secrets)
        case str() if key.lower() == "authorization":
            secrets.add(variable, value.rpartition(" ")[2])
        case str() if names_a_secret(key):
            secrets.add(variable, value)


def _places(home: Path) -> dict[str, str]:
    places = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local/share",
        "XDG_STATE_HOME": home / ".local/state",
        "XDG_CACHE_HOME": home / ".cache",
        "TMPDIR": home / "tmp",
    }
    for folder in places.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {**{name: str(folder) for name, folder in places.items()}, "NO_COLOR": "1", "TERM": "dumb"}


def _with_files(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Replace the names of files beside the suite by full paths.

    The agent has another working folder, in which the names would not lead to the files."""
    words = []
    for place, word in enumerate(command):
        # A program name without a folder is searched for in PATH, as in a shell.
        is_file = (place > 0 or "/" in word) and (folder / word).is_file()
        words.append(str((folder / word).absolute()) if is_file else word)
    return tuple(words)


def _set_up_unknown(request: SetupRequest, setup: Setup) -> None:
    if request.system is not None:
        raise AgentError(
            f"the agent {request.subject.called} cannot get a system prompt, because ACP does not send one: remove "
            "`system` and `clock`, or name the agent's preset with `agent`"
        )
    if request.builtin == "off":
        setup.notes.append("the agent's own tools cannot be switched off without a preset; permissions are refused")


def _set_up_claude(request: SetupRequest, home: Path, setup: Setup) -> None:
    options: dict[str, Any] = {"settingSources": [], "strictMcpConfig": True}
    if request.builtin == "off":
        options["tools"] = []
    if model := setup.environment.get("ANTHROPIC_MODEL"):
        options["model"] = model
    setup.meta["claudeCode"] = {"options": options}
    if request.system is not None:
        setup.meta["systemPrompt"] = request.system
    # Tool search is turned off, because the agent's model would get a search tool in place of the servers' tools.
    setup.environment |= {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "ENABLE_TOOL_SEARCH": "false",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
    }


_OPENAI_URL = "https://api.openai.com/v1"


def _set_up_codex(request: SetupRequest, home: Path, setup: Setup) -> None:
    config: dict[str, Any] = {"web_search": "disabled", "sandbox_mode": "read-only"}
    if model := setup.environment.get("OPENAI_MODEL"):
        config["model"] = model
    # Without a provider in its configuration, Codex asks for a login even if the key is set.
    keys = [name for name in ("OPENAI_API_KEY", "CODEX_API_KEY") if setup.environment.get(name)]
    url = setup.environment.get("OPENAI_BASE_URL") or _OPENAI_URL
    if keys:
        provider = {"name": "endpoint", "base_url": url, "wire_api": "responses", "env_key": keys[0]}
        config |= {"model_provider": "endpoint", "model_providers": {"endpoint": provider}}
    if request.system is not None:
        config["model_instructions_file"] = _written(home / "system.md", request.system)
    if request.builtin == "off":
        off = ("shell_tool", "unified_exec", "multi_agent", "goals", "collaboration_modes", "apps", "plugins")
        config |= {"features": dict.fromkeys(off, False), "tools": {"view_image": False}}
        setup.notes.append("Codex keeps its tools for resources and images, which cannot be switched off")
    setup.environment["CODEX_HOME"] = str(home / ".codex")
    _written(home / ".codex/config.toml", tomlkit.dumps(config))


_GEMINI_TOOLS = (
    *("update_topic", "list_directory", "read_file", "grep_search", "glob", "replace", "write_file", "web_fetch"),
    *("run_shell_command", "list_background_processes", "read_background_output", "google_web_search", "write_todos"),
    *("enter_plan_mode", "invoke_agent", "activate_skill", "codebase_investigator", "save_memory", "ask_user"),
)


def _set_up_gemini(request: SetupRequest, home: Path, setup: Setup) -> None:
    settings: dict[str, Any] = {
        # In an untrusted folder, the agent would silently ignore the servers, so the check of folders is turned off.
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
    }
    if request.builtin == "off":
        settings["tools"] = {"exclude": list(_GEMINI_TOOLS)}
    if request.system is not None:
        setup.environment["GEMINI_SYSTEM_MD"] = _written(home / "system.md", request.system)
    setup.environment |= {
        "GEMINI_CLI_HOME": str(home),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    _written(home / ".gemini/settings.json", json_text(settings))


def _set_up_opencode(request: SetupRequest, home: Path, setup: Setup) -> None:
    written = setup.environment.get("OPENCODE_CONFIG_CONTENT") or "{}"
    try:
        config = parsed_json(written)
    except ValueError as error:
        raise AgentError(f"OPENCODE_CONFIG_CONTENT is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise AgentError("OPENCODE_CONFIG_CONTENT is not a JSON object")
    agents = {"title": {"disable": True}}
    if request.system is not None:
        agents["workbench"] = {"mode": "primary", "prompt": request.system}  # type: ignore[dict-item]
        config["default_agent"] = "workbench"
    # OpenCode does not offer tools with "deny" to its model, and requests permission for tools with "ask". Without
    # these settings, its shell runs commands without asking.
    asked = {f"{server}_*": "ask" for server in request.servers}
    if request.builtin == "off":
        config["permission"] = {"*": "deny", **asked}
    elif request.builtin == "forbid":
        config["permission"] = {"*": "ask"}
    if not any(map(names_a_secret, setup.environment)) and not config.get("provider") and not config.get("model"):
        raise AgentError(
            f"the agent {request.subject.called} has no model: set the key of a provider, such as ANTHROPIC_API_KEY, "
            "or name a provider and a model in OPENCODE_CONFIG_CONTENT"
        )
    # Without this setting, OpenCode sends prompts to its own free models, which the user has not chosen.
    if not str(config.get("model", "")).startswith("opencode/"):
        config["disabled_providers"] = [*config.get("disabled_providers", ()), "opencode"]
    config |= {"autoupdate": False, "share": "disabled", "agent": {**config.get("agent", {}), **agents}}
    setup.environment |= {
        "OPENCODE_CONFIG_CONTENT": json_text(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }
    # By default, OpenCode also reads instruction files in all folders above its working folder, up to the root of a
    # repository.
    if request.subject.folder is None:
        setup.environment["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    else:
        _mark_as_repository(home.parent / "work")


def _mark_as_repository(folder: Path) -> None:
    """Make a folder the root of an empty Git repository, unless it already is a repository."""
    git = folder / ".git"
    if git.exists():
        return
    for place in ("objects", "refs"):
        (git / place).mkdir(parents=True)
    _written(git / "HEAD", "ref: refs/heads/main\n")


_QWEN_TOOLS = (
    *("agent", "ask_user_question", "cron_create", "cron_delete", "cron_list", "edit", "enter_plan_mode"),
    *("enter_worktree", "exit_plan_mode", "exit_worktree", "get_goal", "glob", "grep_search", "list_agents"),
    *("loop_wakeup", "monitor", "notebook_edit", "read_file", "read_mcp_resource", "record_artifact"),
    *("report_findings", "run_shell_command", "send_message", "skill", "task_stop", "todo_write", "update_goal"),
    *("web_fetch", "write_file", "zoom_image"),
)


def _set_up_qwen(request: SetupRequest, home: Path, setup: Setup) -> None:
    # With tool search, the model would get a search tool in place of the servers' tools. Versions that do not know the
    # setting, such as 0.15, offer the servers' tools if the search tool is excluded.
    tools: dict[str, Any] = {"toolSearch": {"enabled": False}, "exclude": ["tool_search"]}
    if request.builtin == "off":
        tools["exclude"] += _QWEN_TOOLS
    # Otherwise its model may be asked before the tools that the servers have listed are offered to it.
    setup.environment["QWEN_CODE_LEGACY_MCP_BLOCKING"] = "1"
    if request.system is not None:
        setup.environment["QWEN_SYSTEM_MD"] = _written(home / "system.md", request.system)
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True},
        "tools": tools,
        "permissions": {"allow": [f"mcp__{name}" for name in request.servers]},
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        "ui": {"enableFollowupSuggestions": False},
    }
    _written(home / ".qwen/settings.json", json_text(settings))


def _set_up_fast_agent(request: SetupRequest, home: Path, setup: Setup) -> None:
    words = [*setup.command]
    if model := setup.environment.get("FAST_AGENT_MODEL"):
        words += ["--model", model]
    if request.system is not None:
        words += ["-i", _written(home / "system.md", request.system)]
    setup.command = tuple(words)


def _set_up_vibe(request: SetupRequest, home: Path, setup: Setup) -> None:
    if request.system is not None:
        raise AgentError("Vibe cannot get a system prompt: remove `system` and `clock`")
    if request.builtin == "off":
        setup.notes.append("Vibe's own tools cannot be switched off; permissions are refused")
    config: dict[str, Any] = {"enable_telemetry": False, "enable_update_checks": False}
    url, model = (setup.environment.get(f"MISTRAL_{what}") for what in ("BASE_URL", "MODEL"))
    if url:
        endpoint = {"name": "endpoint", "api_base": url, "api_key_env_var": "MISTRAL_API_KEY", "backend": "generic"}
        config["providers"] = [endpoint]
    if model:
        named = {"name": model, "alias": model, "provider": "endpoint" if url else "mistral"}
        config |= {"active_model": model, "models": [named]}
    setup.environment["VIBE_HOME"] = str(home / ".vibe")
    _written(home / ".vibe/config.toml", tomlkit.dumps(config))


_PRESETS: Mapping[str, Callable[[SetupRequest, Path, Setup], None]] = {
    "claude-code": _set_up_claude,
    "codex": _set_up_codex,
    "gemini": _set_up_gemini,
    "opencode": _set_up_opencode,
    "qwen": _set_up_qwen,
    "fast-agent": _set_up_fast_agent,
    "vibe": _set_up_vibe,
}


def _written(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return str(file)


def missing_agent_message(subject: Subject) -> str:
    """Return the message for a missing agent program, with the command that installs it."""
    command = subject.started_command
    assert command is not None
    missing = f"the agent {subject.called} is not installed: there is no program {command[0]!r}"
    if subject.agent is None or subject.acp is not None:
        return missing
    return f"{missing}; install it with `{KNOWN_AGENTS[subject.agent].install}`"


def unsupported_system_reason() -> str | None:
    """Return why this system cannot run agents; `None` if it can run agents."""
    if sys.platform == "win32":
        return "agents are run on Linux and macOS alone: their tools pass through a Unix socket"
    return None


def server_name(name: str) -> str:
    """Return a server's name in a form that every agent accepts: letters, digits, `-` and `_`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
