"""Models by name: those built in, and those behind endpoints."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.providers.built_in import OFFLINE, REPLAY
from workbench.providers.http.check import CheckResult
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import Model, ModelError

if TYPE_CHECKING:
    from workbench.providers.replay import Replays

__all__ = ["BuiltInModels", "CheckResult", "Endpoints"]


class BuiltInModels:
    """The built-in models of one batch. `pace_ms` is the pause between two pieces of the offline model's answers,
    `own_pace` plays recordings at the pace at which they were made."""

    def __init__(self, *, pace_ms: float = 0, own_pace: bool = False) -> None:
        self._pace_ms = pace_ms
        self._own_pace = own_pace

    def open(self, name: str, folder: Path, case_id: str) -> Model:
        """The model for a run of the case; the path of a recording is relative to `folder`. Raises ModelError when
        there is no recording of that case, or it cannot be read."""
        if name == OFFLINE:
            return self._offline
        return self._replays.open(name, _recorded_at(name, folder), case_id)

    def check(self, name: str, folder: Path) -> None:
        """Raises ModelError where `open` would do so for every case."""
        if name != OFFLINE:
            self._replays.check(_recorded_at(name, folder))

    @cached_property
    def _offline(self) -> Model:
        from workbench.providers.offline.model import OfflineModel

        return OfflineModel(pace_ms=self._pace_ms)

    @cached_property
    def _replays(self) -> Replays:
        from workbench.providers.replay import Replays

        return Replays(own_pace=self._own_pace)


def _recorded_at(name: str, folder: Path) -> Path:
    path = name.removeprefix(REPLAY)
    if path == name:
        raise ModelError(f"there is no model {name!r}")
    if not path:
        raise ModelError(f"{REPLAY} names no recording: write {REPLAY}FILE or {REPLAY}FOLDER")
    return folder / path
