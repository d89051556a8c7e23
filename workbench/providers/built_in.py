"""The built-in models, which need no endpoint: the offline model, and models that replay recordings."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass

if TYPE_CHECKING:
    from workbench.providers.model import Model
    from workbench.providers.replay import RecordingPlayer
    from workbench.trajectory.recording import Recording


OFFLINE = "offline"
WEAKNESSES = {
    "careless": "ignores listed values",
    "gullible": "follows instructions in results of tools",
    "stubborn": "repeats a failed call for ever",
    "hasty": "chooses tools by the first word of their descriptions",
}
"""The planted weaknesses of the offline model, by the word after `offline:`."""
PLANTED_MODELS = tuple(f"{OFFLINE}:{weakness}" for weakness in WEAKNESSES)
REPLAY = "replay:"
MODEL_SEPARATOR = "#"
"""Separates a folder of recordings from the name of the recorded model to play."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The name of a built-in model, with a description in one line."""

    name: str
    description: str


def built_in_models() -> tuple[ModelInfo, ...]:
    models = [ModelInfo(OFFLINE, "baseline, not a language model: matches words, needs no network and no key")]
    for weakness, behaviour in WEAKNESSES.items():
        models.append(ModelInfo(f"{OFFLINE}:{weakness}", f"the same with a planted weakness: {behaviour}"))
    return (*models, ModelInfo(f"{REPLAY}FILE", "replays a recorded run"))


def is_built_in(name: str) -> bool:
    return name == OFFLINE or name.startswith((f"{OFFLINE}:", REPLAY))


class BuiltInModels:
    """The built-in models of one batch.

    `pace_ms` is the pause in milliseconds between two pieces of an answer of the offline model. With `original_pace`,
    recordings are replayed at their recorded speed."""

    # The models are imported on first use, because rapidfuzz and the reader of recordings would slow every start.

    def __init__(self, *, pace_ms: float = 0, original_pace: bool = False) -> None:
        self._pace_ms = pace_ms
        self._original_pace = original_pace

    def open(self, name: str, folder: Path, case_id: str) -> Model:
        """Return the built-in model for a run of a case.

        The path of a recording is relative to `folder`. Raises ModelError for an unknown name, and for a missing or
        unreadable recording. Also raises ModelError if a folder has recordings of several models and `name` does not
        choose one of them."""
        if name == OFFLINE:
            return self._offline
        if name in PLANTED_MODELS:
            return self._planted(name.partition(":")[2])
        return self._replays.open(name, *_recorded_at(name, folder), case_id)

    def recording(self, name: str, folder: Path, case_id: str) -> Recording:
        """Return the recording that a `replay:` model plays for a case.

        Raises ModelError as `open` does."""
        return self._replays.open(name, *_recorded_at(name, folder), case_id).recording

    def check(self, name: str, folder: Path) -> None:
        """Raise ModelError if `open` would raise it for every case."""
        if name != OFFLINE and name not in PLANTED_MODELS:
            self._replays.check(name, *_recorded_at(name, folder))

    @cached_property
    def _offline(self) -> Model:
        from workbench.providers.offline.model import OfflineModel

        return OfflineModel(pace_ms=self._pace_ms)

    def _planted(self, weakness: str) -> Model:
        from workbench.providers.offline.model import PlantedModel

        return PlantedModel(weakness, pace_ms=self._pace_ms)

    @cached_property
    def _replays(self) -> RecordingPlayer:
        from workbench.providers.replay import RecordingPlayer

        return RecordingPlayer(original_pace=self._original_pace)


def _recorded_at(name: str, folder: Path) -> tuple[Path, str | None]:
    """Split the name of a `replay:` model into the path of its recordings and the name of the recorded model.

    The name of the recorded model follows `#`; it is `None` if there is no `#`."""
    from workbench.providers.model import ModelError  # imported here: the app's first screen needs only the names

    path = name.removeprefix(REPLAY)
    if path == name:
        raise ModelError(f"there is no model {name!r}; the built-in models are {', '.join((OFFLINE, *PLANTED_MODELS))}")
    if not path:
        raise ModelError(
            f"{REPLAY} is not followed by a recording: write {REPLAY}FILE, {REPLAY}FOLDER or {REPLAY}FOLDER#MODEL"
        )
    try:
        # Files, folders and models may have a `#` in their names. If the whole text is an existing path, it names no
        # model. Otherwise the longest beginning that is a folder is the path.
        if not (folder / path).exists():
            at = path.rfind(MODEL_SEPARATOR)
            while at >= 0:
                if (folder / path[:at]).is_dir():
                    return folder / path[:at], path[at + 1 :]
                at = path.rfind(MODEL_SEPARATOR, 0, at)
    except OSError as error:
        raise ModelError(f"{folder / path} cannot be read: {error.strerror}") from error
    return folder / path, None
