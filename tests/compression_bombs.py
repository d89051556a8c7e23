"""Small files and bodies that unpack to far more."""

from __future__ import annotations

import functools
import zlib

UNPACKED_BYTES = 80 << 20


@functools.cache
def bomb(first: bytes = b"", filling: bytes = b" ", wbits: int = zlib.MAX_WBITS) -> bytes:
    """`first` and 80 MB of one character, compressed to less than one; with 31 for `wbits` as gzip."""
    packing = zlib.compressobj(1, wbits=wbits)
    piece = filling * (1 << 20)
    packed = [packing.compress(first), *(packing.compress(piece) for _ in range(UNPACKED_BYTES >> 20))]
    return b"".join([*packed, packing.flush()])


def gzipped(first: bytes = b"", filling: bytes = b" ") -> bytes:
    """The same as gzip has it."""
    return bomb(first, filling, 31)
