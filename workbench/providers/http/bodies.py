"""Reads the bodies of responses, and decompresses them if a server compresses without being asked.

aiohttp's own decompression is not used: it accepts a gzip stream without its end, and hangs on a `deflate` stream that
ends before its stated length."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import aiohttp

MAX_PIECE_BYTES = 1024 * 1024
"""The most bytes that are decompressed at a time, because some kilobytes can expand to gigabytes."""

_ANY_HEADER = 32 + zlib.MAX_WBITS  # accepts a header of gzip or zlib
_CM_DEFLATE = 8  # the method in the first byte of a zlib header
_GZIP = 0x1F  # the first byte of a gzip header


class Content(Protocol):
    """The body of a response, read in pieces."""

    async def readany(self) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        ...


class BodyError(OSError):
    """A body cannot be read.

    `sentence` says why. Messages begin with the endpoint's address, followed by this sentence."""

    def __init__(self, sentence: str, *, retryable: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.retryable = retryable


def content_of(response: aiohttp.ClientResponse) -> Content:
    """Return the body of a response, decompressed if necessary. aiohttp must leave the body compressed.

    Raises BodyError."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return response.content
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Decompressed(response.content)
    raise BodyError(f"compresses its answers ({encoding[:40]}) without being asked: switch compression off there")


class _Decompressed:
    """Decompresses a body.

    Raises ConnectionError if the end of the body is missing, and BodyError if the body is damaged."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._rest = b""
        self._decompressor: zlib._Decompress | None = None
        self._is_plain = False

    async def readany(self) -> bytes:
        while True:
            data = self._rest or await self._content.readany()
            if not data:
                if self._decompressor is not None and not self._decompressor.eof:
                    raise ConnectionError("the compressed body ended too early")
                return b""
            if piece := self._decompressed(data):
                return piece

    def _decompressed(self, data: bytes) -> bytes:
        if self._decompressor is None or self._decompressor.eof:  # a body may consist of several gzip members
            self._is_plain = data[0] & 0x0F != _CM_DEFLATE and data[0] != _GZIP  # some servers omit zlib's header
            self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS if self._is_plain else _ANY_HEADER)
        try:
            piece = self._decompressor.decompress(data, MAX_PIECE_BYTES)
        except zlib.error as error:
            # A damaged body may arrive undamaged in the next attempt. A wrong `content-encoding` would be wrong again.
            declared = not self._is_plain and "header check" not in str(error)
            problem = "is damaged" if declared else "is not compressed as declared"
            sentence = f"sends a body that {problem}: check the server or its proxy"
            raise BodyError(sentence, retryable=declared) from error
        self._rest = self._decompressor.unconsumed_tail or self._decompressor.unused_data
        return piece
