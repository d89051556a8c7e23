"""The content of the images and sounds of one run. Only one event stores each content, but every request sends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workbench.limits import MAX_KEPT_MEDIA_BYTES, MAX_RUN_MEDIA_BYTES
from workbench.providers.model import Model, accepts_media
from workbench.tools.answer import ToolAnswer, ToolsError
from workbench.trajectory.events import Message
from workbench.trajectory.media import Media
from workbench.trajectory.trajectory import Trajectory


class MediaLostError(ToolsError):
    """The content of an image or a sound in a message is not known."""


class MediaStore:
    """The content of the images and sounds of one run, keyed by their hashes."""

    def __init__(self, of_case: Iterable[Media] = ()) -> None:
        self._data: dict[str, str] = {}
        self._held = self._kept = 0
        """The number of bytes of all content, and of the content in events."""
        self.remember(of_case)

    def remember(self, media: Iterable[Media]) -> None:
        """Keep the content of images and sounds, so that later events of this run need not store it."""
        for each in media:
            if each.data and each.sha256 not in self._data:
                self._data[each.sha256] = each.data
                self._held += each.size

    def remember_run(self, origin: Trajectory) -> None:
        """Keep the images and sounds in the tool results of the run from which this run is forked."""
        for round_ in origin.rounds:
            for answer in (*round_.superseded, round_):
                for call in answer.calls:
                    if call.result is not None:
                        self.remember(call.result.media)

    def stored_answer(self, answer: ToolAnswer) -> ToolAnswer:
        """Return a tool's answer in the form that its event stores.

        Content is left out if an earlier event has it or if it exceeds the storage limit. Content beyond the run's
        limit is replaced by a placeholder and is not sent to the model."""
        if not answer.media:
            return answer
        content, media = answer.content, []
        for each in answer.media:
            if each.sha256 in self._data:
                media.append(each.without_data)
            elif self._held + each.size > MAX_RUN_MEDIA_BYTES:
                refused = f"{each.placeholder[:-1]}, not sent: {MAX_RUN_MEDIA_BYTES.exceeded()}]"
                content = content.replace(each.placeholder, refused, 1)
            else:
                self.remember((each,))
                media.append(self._as_kept(each))
        return replace(answer, content=content, media=tuple(media))

    def with_content(self, messages: tuple[Message, ...], model: Model) -> tuple[Message, ...]:
        """Return messages with the content of supported images and sounds, and without unsupported ones.

        Raises MediaLostError if the content of a supported image or sound is not known."""
        return tuple([self._filled(message, model) for message in messages])

    def _filled(self, message: Message, model: Model) -> Message:
        if not message.media:
            return message
        media = []
        for each in message.media:
            if accepts_media(model, each):
                if each.sha256 not in self._data:
                    raise MediaLostError(_lost(each))
                media.append(replace(each, data=self._data[each.sha256]))
        return replace(message, media=tuple(media))

    def _as_kept(self, media: Media) -> Media:
        if self._kept + media.size > MAX_KEPT_MEDIA_BYTES:
            return media.without_data
        self._kept += media.size
        return media


def _lost(media: Media) -> str:
    if media.file:
        return (
            f"{media.file} {media.placeholder} of the forked run is missing or changed: restore the file, or run the "
            "case again"
        )
    return f"{media.placeholder} of the forked run was not stored: {MAX_KEPT_MEDIA_BYTES.reached()}"
