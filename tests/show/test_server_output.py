"""The output of a server before its failure is shown once, without control characters."""

from __future__ import annotations

from workbench.show.text import Paint
from workbench.show.views.server_output import ServerOutputs
from workbench.trajectory.events import ServerOutput

OUTPUT = ServerOutput("shop", ("ready", "\x1b[31mno database\x1b[0m"), 4, "/logs/shop.log")


def test_each_server_of_a_suite_is_told_once() -> None:
    told = ServerOutputs(Paint(enabled=False))
    lines = list(told.lines("a.toml", [None, OUTPUT, OUTPUT], 4))
    assert lines == [
        "    standard error of server shop, the last 2 of 6 lines:",
        "      ready",
        "      ␛[31mno database␛[0m",
    ]
    assert list(told.lines("a.toml", [OUTPUT], 4)) == []
    silent = ServerOutput("shop", ())
    assert list(told.lines("b.toml", [silent], 0)) == ["server shop wrote nothing to standard error"]


def test_an_agent_is_called_an_agent() -> None:
    agent = ServerOutput("codex", ("no key",), is_agent=True)
    lines = ["standard error of agent codex, 1 line:", "  no key"]
    assert list(ServerOutputs(Paint(enabled=False)).lines("a.toml", [agent], 0)) == lines
