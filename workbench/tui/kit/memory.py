"""The app's memory between sessions: its look and, for each project, the last position."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from workbench.config.read_only import is_read_only
from workbench.dataclasses import dataclass
from workbench.limits import MAX_STATE_FILE_BYTES
from workbench.suite.trust import write_atomically

_log = logging.getLogger(__name__)

FORMAT = 1
MAX_PROJECTS = 100
"""Beyond this number, projects opened the longest ago are dropped."""

MAX_COMMANDS = 20
"""So many actions that were chosen in the palette are remembered."""

View = Literal["form", "toml"]
Right = Literal["case", "run"]
"""The pane next to the tree if there is room for two."""

Layout = Literal["wide", "narrow"]
"""Three panes side by side, or two."""

_NONE: Mapping[str, Place] = MappingProxyType({})
_UNMOVED: Mapping[Layout, tuple[float, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Place:
    """The position in a project.

    It has the suite and the key of the case, folded branches (kind and path), and the models (none: each suite's
    own)."""

    suite: str = ""
    case: str | None = None
    folded: tuple[tuple[str, str], ...] = ()
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remembered:
    """Everything that is remembered.

    `projects` is keyed by the opened paths, the last one opened last. `commands` are the ids of the actions chosen in
    the palette, the latest first. `borders` are those between the panes that were moved, by layout, as shares of the
    width."""

    theme: str | None = None
    view: View | None = None
    right: Right | None = None
    zoomed: bool = False
    projects: Mapping[str, Place] = field(default_factory=lambda: _NONE)
    commands: tuple[str, ...] = ()
    borders: Mapping[Layout, tuple[float, ...]] = field(default_factory=lambda: _UNMOVED)

    def with_place(self, project: str, place: Place) -> Remembered:
        """Return a copy with a new position in a project, which becomes the last one."""
        others = {}
        for key, known in self.projects.items():
            if key != project:
                others[key] = known
        latest = list(others.items())[-(MAX_PROJECTS - 1) :]
        return replace(self, projects=MappingProxyType({**dict(latest), project: place}))

    def with_command(self, action_id: str) -> Remembered:
        """Return a copy with an action as the one chosen last in the palette."""
        others = tuple(known for known in self.commands if known != action_id)
        return replace(self, commands=(action_id, *others)[:MAX_COMMANDS])


NOTHING = Remembered()

_BORDERS: Mapping[Layout, int] = {"wide": 2, "narrow": 1}
"""The number of borders of each layout."""


class Memory:
    """The file with the remembered state.

    Damaged or unknown parts are ignored, and failures to write are tolerated; both are logged. If two programs write,
    the last one wins for each setting."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> Remembered:
        """Read the present state."""
        try:
            if self._file.stat().st_size > MAX_STATE_FILE_BYTES:
                raise ValueError("it is too large")
            document = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return NOTHING
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("%s cannot be read, so nothing is remembered: %s", self._file, error)
            return NOTHING
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            _log.warning("%s is of another format, so nothing is remembered", self._file)
            return NOTHING
        found = _remembered(document)
        if _document(found) != document:
            _log.warning("%s holds something unknown, which is ignored", self._file)
        return found

    def change(self, change: Callable[[Remembered], Remembered]) -> None:
        """Change the state and write it.

        An app that only shows remembers nothing."""
        if is_read_only():
            return
        before = self.read()
        after = change(before)
        if after == before and list(after.projects) == list(before.projects):
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            content = json.dumps(_document(after), ensure_ascii=True, indent=1)
            write_atomically(self._file, content.encode("utf-8"))
        except OSError as error:
            _log.warning("%s cannot be written, so nothing is remembered: %s", self._file, error)


def _document(remembered: Remembered) -> dict[str, object]:
    return {
        "format": FORMAT,
        "theme": remembered.theme,
        "view": remembered.view,
        "right": remembered.right,
        "zoomed": remembered.zoomed,
        "projects": {
            project: {
                "suite": place.suite,
                "case": place.case,
                "folded": [list(branch) for branch in place.folded],
                "models": list(place.models),
            }
            for project, place in remembered.projects.items()
        },
        **({"commands": list(remembered.commands)} if remembered.commands else {}),
        **({"borders": {key: list(known) for key, known in remembered.borders.items()}} if remembered.borders else {}),
    }


def _remembered(document: Mapping[str, object]) -> Remembered:
    theme, projects = document.get("theme"), document.get("projects")
    places = {name: _place(place) for name, place in projects.items()} if isinstance(projects, dict) else {}
    return Remembered(
        theme=theme if isinstance(theme, str) else None,
        view=next((known for known in get_args(View) if known == document.get("view")), None),
        right=next((known for known in get_args(Right) if known == document.get("right")), None),
        zoomed=document.get("zoomed") is True,
        projects=MappingProxyType(places),
        commands=_texts(document.get("commands"))[:MAX_COMMANDS],
        borders=_borders(document.get("borders")),
    )


def _borders(document: object) -> Mapping[Layout, tuple[float, ...]]:
    known: dict[Layout, tuple[float, ...]] = {}
    for layout, count in _BORDERS.items():
        shares = document.get(layout) if isinstance(document, dict) else None
        if isinstance(shares, list) and len(shares) == count and all(_is_share(share) for share in shares):
            known[layout] = tuple(shares)
    return MappingProxyType(known)


def _is_share(share: object) -> bool:
    return isinstance(share, float) and 0 < share < 1


def _place(document: object) -> Place:
    if not isinstance(document, dict):
        return Place()
    suite, case, folded = document.get("suite"), document.get("case"), document.get("folded")
    branches = [branch for branch in folded if len(_texts(branch)) == 2] if isinstance(folded, list) else []
    return Place(
        suite=suite if isinstance(suite, str) else "",
        case=case if isinstance(case, str) else None,
        folded=tuple((kind, path) for kind, path in branches),
        models=_texts(document.get("models")),
    )


def _texts(document: object) -> tuple[str, ...]:
    is_list = isinstance(document, list) and all(isinstance(text, str) for text in document)
    if is_list and isinstance(document, list):
        return tuple(document)
    return ()
