"""Amazon's event streams: frames with both checksums, around events of the Messages API."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.providers.server import Answer, Call, blocks_of

STREAM = {"content-type": "application/vnd.amazon.eventstream", "x-amzn-requestid": "1111-2222"}


def frame(headers: Mapping[str, str], payload: bytes, *, others: bytes = b"") -> bytes:
    """Return one frame. `others` are packed headers of other types."""
    packed = others
    for name, value in headers.items():
        packed += struct.pack(">B", len(name)) + name.encode() + b"\x07"
        packed += struct.pack(">H", len(value.encode())) + value.encode()
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + packed + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def chunk(event: bytes) -> bytes:
    """Return the frame of one event of the model, padded as Bedrock does."""
    payload = {"bytes": base64.b64encode(event).decode(), "p": "abcdefghijk"}
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, json.dumps(payload).encode())


def exception(kind: str, message: str) -> bytes:
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


def frames_of(text: str = "", calls: Sequence[Call] = (), **how: Any) -> list[bytes]:
    """Return the frames of an answer in the Messages API."""
    frames = []
    for block in blocks_of("anthropic", text, calls, **how):
        data = next(line for line in block.split(b"\n") if line.startswith(b"data:"))
        frames.append(chunk(data.removeprefix(b"data:").strip()))
    return frames


def streamed(*frames: bytes, size: int = 100) -> Answer:
    """Return an answer of these frames, split into pieces of `size` bytes."""
    return replace(Answer(frames, headers=STREAM), framing="chunked").in_pieces_of(size)
