"""What the app remembers between sessions: its appearance, and the last position in each project."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from workbench.config.read_only import is_read_only
from workbench.dataclasses import dataclass
from workbench.limits import MAX_STATE_FILE_BYTES
from workbench.suite.files import resolved, write_atomically

if TYPE_CHECKING:
    from workbench.authoring.workspace import Workspace

_log = logging.getLogger(__name__)

FORMAT = 1
MAX_PROJECTS = 100
"""The maximum number of remembered projects. The least recently opened projects are dropped."""

MAX_COMMANDS = 20
"""The maximum number of remembered actions of the palette."""

View = Literal["form", "toml"]
RightPane = Literal["case", "run"]
"""The pane beside the tree if two panes fit."""

Layout = Literal["wide", "narrow"]
"""Three panes side by side (`wide`) or two (`narrow`)."""

_NONE: Mapping[str, ProjectPosition] = MappingProxyType({})
_DEFAULT_BORDERS: Mapping[Layout, tuple[float, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class SavedRequestLine:
    """The content of the input line for new cases: the typed text, the kind of request, and the latest requests.

    Secrets are not stored."""

    text: str = ""
    kind: str = ""
    recent: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProjectPosition:
    """The last position in a project.

    `case` is the key of the selected case. `folded` has the kind and path of each folded branch of the tree. `models`
    are the chosen models. If there are none, each suite uses its own. `variants` are the names of the variants to run
    beside the suites. `line` is the input line for new cases."""

    suite: str = ""
    case: str | None = None
    folded: tuple[tuple[str, str], ...] = ()
    models: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    line: SavedRequestLine = SavedRequestLine()


def project_of(workspace: Workspace) -> str:
    """Return the key under which a project is remembered: its opened paths, joined like `PATH`."""
    return os.pathsep.join(str(resolved(root)) for root in workspace.roots)


@dataclass(frozen=True)
class MemoryContent:
    """What the app remembers.

    `projects` has the positions by the key of the project (`project_of`), the latest project last. `commands` are the
    ids of actions chosen in the palette, latest first. `borders` are the positions of moved borders between panes, by
    layout, as shares of the width."""

    theme: str | None = None
    view: View | None = None
    right: RightPane | None = None
    zoomed: bool = False
    projects: Mapping[str, ProjectPosition] = field(default_factory=lambda: _NONE)
    commands: tuple[str, ...] = ()
    borders: Mapping[Layout, tuple[float, ...]] = field(default_factory=lambda: _DEFAULT_BORDERS)

    def with_position(self, project: str, place: ProjectPosition) -> MemoryContent:
        """Return a copy with a new position in a project, which becomes the latest project."""
        others = dict(self.projects)
        # The project is removed first, because setting an existing key would keep its place in the order.
        others.pop(project, None)
        latest = dict(list(others.items())[-(MAX_PROJECTS - 1) :])
        return replace(self, projects=MappingProxyType({**latest, project: place}))

    def with_request_line(self, project: str, line: SavedRequestLine) -> MemoryContent:
        """Return a copy with a new input line for new cases in a project."""
        place = self.projects.get(project, ProjectPosition())
        return self.with_position(project, replace(place, line=line))

    def with_command(self, action_id: str) -> MemoryContent:
        """Return a copy in which an action is the latest that was chosen in the palette."""
        others = tuple(known for known in self.commands if known != action_id)
        return replace(self, commands=(action_id, *others)[:MAX_COMMANDS])


EMPTY_MEMORY = MemoryContent()

_BORDERS: Mapping[Layout, int] = {"wide": 2, "narrow": 1}
"""The number of borders of each layout."""


class Memory:
    """The file with what the app remembers.

    Damaged or unknown parts are ignored, and a failure to write is not reported to the user. Both are logged."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> MemoryContent:
        """Read the file. If it is missing or invalid, return empty content."""
        try:
            if self._file.stat().st_size > MAX_STATE_FILE_BYTES:
                raise ValueError("the file is too large")
            document = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return EMPTY_MEMORY
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("%s cannot be read, so nothing is remembered: %s", self._file, error)
            return EMPTY_MEMORY
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            _log.warning("%s is of another format, so nothing is remembered", self._file)
            return EMPTY_MEMORY
        found = _remembered(document)
        if _document(found) != document:
            _log.warning("%s holds something unknown, which is ignored", self._file)
        return found

    def change(self, change: Callable[[MemoryContent], MemoryContent]) -> None:
        """Apply `change` to the content and write the file. A read-only app does not write it."""
        if is_read_only():
            return
        # Another app may have written the file meanwhile, so it is read again. Only what both apps have changed is
        # overwritten.
        before = self.read()
        after = change(before)
        # Mappings with different orders are equal, but the order of the projects matters.
        if after == before and list(after.projects) == list(before.projects):
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The text is escaped, because the path of a project may contain bytes that are not UTF-8.
            content = json.dumps(_document(after), ensure_ascii=True, indent=1)
            write_atomically(self._file, content.encode("utf-8"))
        except OSError as error:
            _log.warning("%s cannot be written, so nothing is remembered: %s", self._file, error)


def _document(content: MemoryContent) -> dict[str, object]:
    document: dict[str, object] = {
        "format": FORMAT,
        "theme": content.theme,
        "view": content.view,
        "right": content.right,
        "zoomed": content.zoomed,
        "projects": {project: _place_document(place) for project, place in content.projects.items()},
    }
    if content.commands:
        document["commands"] = list(content.commands)
    if content.borders:
        document["borders"] = {layout: list(shares) for layout, shares in content.borders.items()}
    return document


def _place_document(place: ProjectPosition) -> dict[str, object]:
    folded = [list(branch) for branch in place.folded]
    document: dict[str, object] = {"suite": place.suite, "case": place.case, "folded": folded}
    document["models"] = list(place.models)
    if place.variants:
        document["variants"] = list(place.variants)
    if place.line != SavedRequestLine():
        document["line"] = {"text": place.line.text, "kind": place.line.kind, "recent": list(place.line.recent)}
    return document


def _remembered(document: Mapping[str, object]) -> MemoryContent:
    projects = document.get("projects")
    places = {}
    if isinstance(projects, dict):
        places = {name: _place(place) for name, place in projects.items()}
    return MemoryContent(
        theme=_text(document.get("theme")),
        view=_member(document.get("view"), get_args(View)),
        right=_member(document.get("right"), get_args(RightPane)),
        zoomed=document.get("zoomed") is True,
        projects=MappingProxyType(places),
        commands=_texts(document.get("commands"))[:MAX_COMMANDS],
        borders=_borders(document.get("borders")),
    )


def _borders(document: object) -> Mapping[Layout, tuple[float, ...]]:
    if not isinstance(document, dict):
        return _DEFAULT_BORDERS
    known: dict[Layout, tuple[float, ...]] = {}
    for layout, count in _BORDERS.items():
        shares = document.get(layout)
        if isinstance(shares, list) and len(shares) == count and all(map(_is_share, shares)):
            known[layout] = tuple(shares)
    return MappingProxyType(known)


def _is_share(share: object) -> bool:
    return isinstance(share, float) and 0 < share < 1


def _place(document: object) -> ProjectPosition:
    if not isinstance(document, dict):
        return ProjectPosition()
    folded: list[tuple[str, str]] = []
    branches = document.get("folded")
    if isinstance(branches, list):
        for texts in map(_texts, branches):
            if len(texts) == 2:
                folded.append((texts[0], texts[1]))
    return ProjectPosition(
        suite=_text(document.get("suite")) or "",
        case=_text(document.get("case")),
        folded=tuple(folded),
        models=_texts(document.get("models")),
        variants=_texts(document.get("variants")),
        line=_line(document.get("line")),
    )


def _line(document: object) -> SavedRequestLine:
    if not isinstance(document, dict):
        return SavedRequestLine()
    text, kind = _text(document.get("text")), _text(document.get("kind"))
    return SavedRequestLine(text or "", kind or "", _texts(document.get("recent")))


def _text(document: object) -> str | None:
    return document if isinstance(document, str) else None


def _texts(document: object) -> tuple[str, ...]:
    if isinstance(document, list) and all(isinstance(text, str) for text in document):
        return tuple(document)
    return ()


_Known = TypeVar("_Known")


def _member(document: object, values: Sequence[_Known]) -> _Known | None:
    for value in values:
        if value == document:
            return value
    return None
