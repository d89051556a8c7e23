"""Small files and bodies that decompress to far larger ones."""

from __future__ import annotations

import functools
import zlib

UNPACKED_BYTES = 80 << 20


@functools.cache
def bomb(first: bytes = b"", filling: bytes = b" ", wbits: int = zlib.MAX_WBITS) -> bytes:
    """Return `first` and 80 MB of one character, compressed to less than 1 MB. With a `wbits` of 31, the format is
    gzip."""
    packing = zlib.compressobj(1, wbits=wbits)
    piece = filling * (1 << 20)
    packed = [packing.compress(first), *(packing.compress(piece) for _ in range(UNPACKED_BYTES >> 20))]
    return b"".join([*packed, packing.flush()])


def gzipped(first: bytes = b"", filling: bytes = b" ") -> bytes:
    """Return the same in gzip format."""
    return bomb(first, filling, 31)
