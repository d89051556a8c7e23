"""Small generated images and sounds."""

from __future__ import annotations

import base64
import struct
import zlib


def png(width: int = 4, height: int = 3, more: bytes = b"") -> bytes:
    """Return a grey PNG. `more` is text in it, which makes images of one size differ."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    note = b"" if not more else chunk(b"tEXt", b"note\0" + more)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + note + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif(width: int = 4, height: int = 3) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int = 4, height: int = 3) -> bytes:
    """Return the head of a JPEG: two segments of metadata, padding, and a progressive frame."""
    comment = b"\xff\xfe\x00\x06note"
    return b"\xff\xd8\xff\xe0\x00\x04ab" + comment + b"\xff\xff\xc2\x00\x0b\x08" + struct.pack(">HH", height, width)


def webp(kind: bytes, width: int = 4, height: int = 3) -> bytes:
    head = {
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14),
        b"VP8 ": bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height),
    }[kind]
    return b"RIFF" + struct.pack("<I", 12 + len(head)) + b"WEBP" + kind + struct.pack("<I", len(head)) + head


def wav() -> bytes:
    return b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + bytes(24)


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
