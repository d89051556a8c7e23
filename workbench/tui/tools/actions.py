"""The screen of tools: servers, what they offer, and calling by hand."""

from __future__ import annotations

from workbench.tui.kit.actions import Action, Feature, Situation

_WRITTEN_OUT = "these tools are written out in the suite: there is no server"
_NEEDED = "runs are under way and may need this server: stop them first"


def _tools(now: Situation) -> str | None:
    return None if now.has_file or now.row == "folder" else "there is no suite here"


def _start(now: Situation) -> str | None:
    server = now.tools.server if now.tools is not None else None
    if server == "running":
        return "this server is running already; r starts it anew"
    return "this server is starting" if server == "starting" else None if server else _WRITTEN_OUT


def _stop(now: Situation) -> str | None:
    server = now.tools.server if now.tools is not None else None
    if server in ("running", "starting"):
        return _NEEDED if now.running else None
    return "this server is not running" if server else _WRITTEN_OUT


def _renew(now: Situation) -> str | None:
    server = now.tools.server if now.tools is not None else None
    if server == "starting":
        return "this server is starting"
    if server == "running" and now.running:
        return _NEEDED
    return None if server else _WRITTEN_OUT


def _tool(now: Situation) -> str | None:
    return None if now.tools is not None and now.tools.on_tool else "put the cursor on a tool"


def _call(now: Situation) -> str | None:
    if now.tools is None or not now.tools.on_tool:
        return _tool(now)
    return None if now.tools.server else "this tool is written out in the suite: nothing stands behind it"


def _copy(now: Situation) -> str | None:
    return None if now.has_text else "there is nothing to copy here"


ACTIONS: tuple[Action, ...] = (
    Action("tools", "Tools and servers of the suite or folder", ("t",), label="tools", why_not=_tools),
    Action("tools.show", "Show what the cursor is on", ("enter", "right"), "tools", listed=False),
    Action("tools.start", "Start the server", ("s",), "tools", "start", _start, listed=False),
    Action("tools.stop", "Stop the server", ("x",), "tools", "stop", _stop, listed=False),
    Action("tools.renew", "Start the server anew", ("r",), "tools", "reconnect", _renew, listed=False),
    Action("tools.call", "Call the tool by hand", ("c",), "tools", "call", _call, listed=False),
    Action("tools.break", "Break before calls of the tool, or no more", ("b",), "tools", "break", _tool, listed=False),
    Action("tools.copy", "Copy the definition of the tool", ("y",), "tools", "copy", _copy, listed=False),
    Action("tools.filter", "Filter the tools as you type", ("slash",), "tools", "filter", listed=False),
    Action("tools.other", "Other column", ("tab", "shift+tab"), "tools", listed=False),
    Action("tools.back", "Leave the filter, the tool or the screen", ("escape", "left"), "tools", "back", listed=False),
    Action("tools.help", "Keys and help", ("question_mark",), "tools", "keys", listed=False),
    Action("tools.quit", "Quit", ("q",), "tools", listed=False),
)

FEATURE = Feature("tools", ACTIONS, screens={"tools": "the tools"})
