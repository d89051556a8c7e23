"""The dialog before a suite starts anything on this machine, with everything that trusting it allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from workbench.reports.visible import one_line
from workbench.suite.trust import SuiteNeeds
from workbench.tui.kit.asking import AskScreen
from workbench.tui.kit.dialogs import Option
from workbench.tui.lines.spans import EMPTY, Line, Span, wrap

TrustAnswer = Literal["once", "always", "mocks", "no"]

_ANSWERS: tuple[tuple[TrustAnswer, Option], ...] = (
    ("once", Option("once", "until this program ends", key="o")),
    ("always", Option("always", "until this changes", key="a")),
    ("mocks", Option("mocks", "start nothing: the tools as last listed, answered by mocks", key="m")),
)


class TrustScreen(AskScreen[TrustAnswer]):
    """Asks for trust: once, always or no, with `mocks` also whether to use mocks. `allowed` is what trust allows, one
    line each."""

    def __init__(
        self,
        path: Path,
        needs: SuiteNeeds,
        allowed: Sequence[str],
        *,
        mocks: bool = False,
        refusing: str = "do not run this suite",
    ) -> None:
        self.TITLE_LINE = _title(needs)  # type: ignore[misc]
        super().__init__(
            lambda width: trust_lines(path, allowed, width),
            [
                *(answer for answer in _ANSWERS if mocks or answer[0] != "mocks"),
                ("no", Option("no", refusing, key="n")),
            ],
            leaving=refusing.removesuffix(" this suite"),
            harmless=frozenset({"mocks"}) if mocks else frozenset(),
        )


def _title(needs: SuiteNeeds) -> str:
    """Return the title for the most serious need."""
    if needs.commands or needs.modules or needs.python:
        return "This suite wants to start something"
    if needs.urls:
        return "This suite wants to reach a server"
    if needs.models:
        return "This suite wants to ask a model" if len(needs.models) == 1 else "This suite wants to ask models"
    return "This suite wants to read the environment"


def trust_lines(path: Path, allowed: Sequence[str], width: int) -> list[Line]:
    """Return exactly what trust allows."""
    room = max(width - 4, 10)
    lines: list[Line] = [EMPTY]
    lines += [(Span("  "), Span(row, "strong")) for row in wrap(one_line(str(path.absolute())), room)]
    lines += [
        (Span("  "), Span(row)) for row in wrap(f"Trusting {one_line(path.name)} allows it, on this machine, to:", room)
    ]
    lines.append(EMPTY)
    for need in allowed:
        for at, row in enumerate(wrap(one_line(need), room - 2)):
            lines.append((Span("  - " if at == 0 else "    ", "warned"), Span(row, "warned")))
    lines.append(EMPTY)
    return lines
