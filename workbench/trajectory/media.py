"""Images and sounds in messages, and the placeholders that mark their positions in the text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from workbench.dataclasses import dataclass
from workbench.limits import MAX_MEDIA_BYTES
from workbench.numerals import bytes_text

_OPAQUE = {"opaque": True}
"""Marks a field that is not searched for secrets, because base64 text and hashes may match a secret by chance."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image or a sound in a message, identified by its content.

    `size` is in bytes, `width` and `height` are in pixels. `file` is the path in the suite's folder, or empty if a tool
    sent the content. `data` is the content as base64. It is empty if the content occurred earlier in the run or exceeds
    a limit, because a run stores each content once."""

    media_type: str
    size: int
    sha256: str = field(metadata=_OPAQUE)
    width: int | None = field(default=None, metadata={"sparse": True})
    height: int | None = field(default=None, metadata={"sparse": True})
    file: str = field(default="", metadata={"sparse": True})
    data: str = field(default="", metadata={**_OPAQUE, "sparse": True})

    @property
    def is_image(self) -> bool:
        """Whether this is an image. If not, it is a sound."""
        return self.media_type.startswith("image/")

    @property
    def placeholder(self) -> str:
        """The text that represents the image or sound in its message, such as `[image/png, 640×480, 23 kB]`."""
        if self.width is not None and self.height is not None:
            return f"[{self.media_type}, {self.width}×{self.height}, {size_text(self.size)}]"
        return f"[{self.media_type}, {size_text(self.size)}]"

    @property
    def without_data(self) -> Media:
        return replace(self, data="")


def size_text(size: int) -> str:
    """Return a number of bytes as text, such as `412 bytes` or `23 kB`."""
    if size < 1_000:
        return f"{size} bytes"
    return bytes_text(size)


def media_of(content: bytes, file: str = "") -> Media | None:
    """Return an image or a sound with the given content, or `None` for a type that models do not accept."""
    media_type = media_type_of(content)
    if media_type is None:
        return None
    width, height = pixels_of(content, media_type) or (None, None)
    digest, data = hashlib.sha256(content).hexdigest(), base64.b64encode(content).decode()
    return Media(media_type, len(content), digest, width, height, file, data)


def media_of_base64(text: str) -> Media | None:
    """Return the image or sound in a base64 text, or `None` for other types, invalid base64, or too much content."""
    if len(text) > MAX_MEDIA_BYTES * 4 // 3 + 4:
        return None
    try:
        return media_of(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return None


def media_type_of(content: bytes) -> str | None:
    """Return the media type of an image or a sound from its first bytes, or `None` for other content.

    >>> media_type_of(b"GIF89a")
    'image/gif'
    """
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(content[8:12])
    # A frame of MPEG audio begins with eleven bits that are 1, two bits for the version, and `01` for layer III.
    if content.startswith(b"ID3") or (len(content) > 2 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2):
        return "audio/mpeg"
    return None


def pixels_of(content: bytes, media_type: str) -> tuple[int, int] | None:
    """Return the width and height of an image, or `None` if they cannot be read from its first bytes."""
    try:
        match media_type:
            case "image/png" if content[12:16] == b"IHDR":
                width, height = struct.unpack(">II", content[16:24])
            case "image/gif":
                width, height = struct.unpack("<HH", content[6:10])
            case "image/jpeg":
                return _pixels_of_jpeg(content)
            case "image/webp":
                return _pixels_of_webp(content)
            case _:
                return None
    except (struct.error, IndexError):
        return None
    return width, height


_FRAMES_OF_JPEG = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of a frame header, which holds the size of the image."""


def _pixels_of_jpeg(content: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _FRAMES_OF_JPEG:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # markers without a length
            at += 2
        else:
            at += 2 + struct.unpack(">H", content[at + 2 : at + 4])[0]
    return None


def _pixels_of_webp(content: bytes) -> tuple[int, int] | None:
    kind = content[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(content[24:27], "little") + 1
        return width, int.from_bytes(content[27:30], "little") + 1
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", content[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", content[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


def text_and_media(content: str, media: Iterable[Media]) -> Iterator[str | Media]:
    """Yield the texts of a message, with its images and sounds in place of their placeholders.

    Blank texts are omitted. An image or a sound is omitted if a person deleted its placeholder."""
    at = 0
    for each in media:
        found = content.find(each.placeholder, at)
        if found < 0:
            continue
        if text := content[at:found].strip("\n"):
            yield text
        yield each
        at = found + len(each.placeholder)
    if text := content[at:].strip("\n"):
        yield text


def with_placeholders(media: Iterable[Media], text: str) -> str:
    """Return `text` with the placeholders of images and sounds before it."""
    return "\n".join([*(each.placeholder for each in media), text])
