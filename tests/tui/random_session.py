"""Input that users, terminals and other programs can send to the app, drawn from a seed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.tui.apps import BROKEN, SMART_HOME
from workbench.config.folders import bundled

SERVERS = Path(__file__).parents[1] / "tools" / "servers"

LENGTH = 300
"""The number of operations in a session."""

MEGABYTE = 1 << 20

ESC = "\x1b"
MOVES = [
    f"{ESC}[{code}" for code in ("A", "B", "C", "D", "H", "F", "5~", "6~", "3~", "2~", "Z", "1;2A", "1;5C", "1;3B")
]
FUNCTIONS = [f"{ESC}OP", f"{ESC}OQ", f"{ESC}OR", f"{ESC}OS", *(f"{ESC}[{code}~" for code in (15, 17, 18, 19, 20, 21))]
LETTERS = [letter for letter in map(chr, range(0x20, 0x7F)) if letter != "q"]
CONTROLS = [chr(code) for code in range(1, 0x20) if code not in (0x11, 0x1B)]  # but for Ctrl+Q
USUAL = [
    "\r",
    "\r",
    ESC,
    ESC,
    "\t",
    " ",
    "r",
    "R",
    "s",
    "s",
    "c",
    "n",
    "e",
    "x",
    "X",
    "1",
    "2",
    "3",
    "z",
    "y",
    "b",
    "d",
]
SCREENS = ["\x10", *"tgfuBmMTk?/oh"]
WORDS = [
    *("run", "step", "find next", "history", "compare", "theme", "breakpoint", "fork", "save", "accept", "tools"),
    *("next match", "timeline", "suites", "delete", "mock", "picture", "models", "undo", "stop", "search", "log"),
    "\x1b[31m",
]
TEXTS = [
    *("", "evening", '{"a": [1, null]}', "x = 1e999", "漢字 👩\u200d👩\u200d👧", "\ud7ff\uffff", "[/nope][bold]"),
    *("a\tb\r\nc\r", "'''\\", "0" * 400),
]
HOSTILE: list[bytes] = [
    *(f"{ESC}[{number}u".encode() for number in (0, 55296, 1114111, 1114112, 10**30)),
    *(f"{ESC}[{number}A".encode() for number in (0, 65536, 10**21)),
    *(b"\x1b[48;99999;99999;1;1t", b"\x1b[48;1;1;1;1t", b"\x1b[48;24;80;384;640t", b"\x1b[48;0;0;0;0t"),
    *(b"\x1b[?2048;1$y", b"\x1b[?2048;2$y", b"\x1b[?2026;2$y", b"\x1b[?9999;9$y", b"\x1b[?1;2c", b"\x1b[9999;9999R"),
    *(b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", b"\x1b]52;c;" + b"QUJD" * 500, b"\x1bP1$r0m", b"\x1b_x\x07", b"\x1bX\x18"),
    *(b"\x1b[<0;99999;99999M", b"\x1b[<0;0;0M", b"\x1b[<64;-1;5M", b"\x1b[M\xff\xff\xff", b"\x1b[M   "),
    *(b"\x1b[" + b"1;" * 3000 + b"m", b"\x1b[1;", b"\x1b[", b"\x1bO", b"\x1b\x1b\x1b", b"\x1b[[", b"\x9b31m"),
    *(b"\xff\xfe\x80", b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80", b"\x00" * 50, b"\x1b[97;5:3u"),
    *(b"\x1b[0;;9731:1114112u", b"\x1b[32;5;5M", b"\x1b[8;1;1t", b"\x1b^", b"\x1b[201~"),
    *(b"\x1b[I\x1b[O" * 5, b"\x1b[200~never ended", b"\x1b[200~\x1b[200~\x1b[201~"),
]  # fmt: skip


@dataclass(frozen=True)
class Send:
    """Bytes from the terminal, all at once."""

    content: bytes


@dataclass(frozen=True)
class Resize:
    """A new size of the terminal."""

    columns: int
    rows: int


@dataclass(frozen=True)
class Wait:
    """A pause without input."""

    seconds: float


Deed = Send | Resize | Wait


def session(seed: int, length: int = LENGTH) -> list[Deed]:
    """Return the operations of a seed."""
    chosen = random.Random(seed)
    kinds: list[tuple[float, Callable[[random.Random], list[Deed]]]] = [
        (30, lambda r: [Send(r.choice(USUAL).encode())]),
        (14, lambda r: [Send(r.choice(MOVES).encode())]),
        (8, lambda r: [Send(r.choice(SCREENS).encode())]),
        (8, lambda r: [Send(r.choice(LETTERS).encode())]),
        (4, lambda r: [Send(r.choice(CONTROLS + FUNCTIONS).encode())]),
        (3, lambda r: [Send(f"{ESC}{r.choice(LETTERS)}".encode())]),
        (8, _mouse),
        (5, lambda r: [Send(r.choice(HOSTILE))]),
        (3, _palette),
        (4, lambda r: [Send(r.choice(TEXTS).encode("utf-8", "surrogatepass"))]),
        (3, lambda r: [Send(b"\x1b[200~" + r.choice(TEXTS).encode("utf-8") + b"\x1b[201~")]),
        (0.08, lambda r: [Send(b"\x1b[200~" + r.choice((b"xyzq", b"a b\r")) * (MEGABYTE // 4) + b"\x1b[201~")]),
        (4, _resizes),
        (5, lambda r: [Wait(r.choice((0.0, 0.01, 0.03, 0.11)))]),
        (2, lambda r: [Send(b"".join(r.choice(USUAL + MOVES + SCREENS).encode() for _ in range(r.randrange(3, 15))))]),
    ]  # fmt: skip
    weights = [weight for weight, _ in kinds]
    operations: list[Deed] = []
    while len(operations) < length:
        (draw,) = chosen.choices([draw for _, draw in kinds], weights)
        operations += draw(chosen)
    return operations


def size_of(seed: int) -> tuple[int, int]:
    """Return the initial size of a seed's session."""
    return random.Random(-seed - 1).choice([(120, 36), (80, 24), (80, 24), (200, 60), (40, 10), (9, 3), (1, 1)])


def _mouse(chosen: random.Random) -> list[Deed]:
    x, y = chosen.randrange(1, 130), chosen.randrange(1, 40)
    button = chosen.choice((0, 0, 0, 1, 2, 32, 35, 64, 65, 66, 67, 4, 8, 16, 128))
    pressed = f"{ESC}[<{button};{x};{y}M"
    moved = f"{ESC}[<32;{chosen.randrange(1, 130)};{chosen.randrange(1, 40)}M" if chosen.random() < 0.3 else ""
    released = f"{ESC}[<{button};{x};{y}m" if chosen.random() < 0.9 else ""
    return [Send((pressed + moved + released).encode() * chosen.choice((1, 1, 1, 2, 3)))]


def _palette(chosen: random.Random) -> list[Deed]:
    pause = Wait(chosen.choice((0.0, 0.03, 0.3)))
    first = chosen.choice((f"{ESC}[6~", "", "\r", f"{ESC}[B{ESC}[B"))
    return [
        Send(b"\x10"),
        pause,
        Send((first + chosen.choice(WORDS)).encode()),
        pause,
        Send(chosen.choice((b"\r", b"\r\r", b"\r\x1b"))),
    ]


def _resizes(chosen: random.Random) -> list[Deed]:
    times = chosen.choice((1, 1, 1, 10))
    sizes = [
        (1, 1),
        (1, 40),
        (200, 1),
        (2, 2),
        (0, 0),
        (20, 5),
        (80, 24),
        (80, 24),
        (120, 36),
        (300, 90),
        (65535, 65535),
    ]
    usual = [(100, 30)] if chosen.random() < 0.8 else []
    return [Resize(*size) for size in [*(chosen.choice(sizes) for _ in range(times)), *usual]]


def suites_for_fuzzing(folder: Path) -> Path:
    """Write suites with servers, chains, judged checks, errors, and texts that are commands to a terminal."""
    suites = folder / "suites"
    suites.mkdir()
    for name in ("office.toml", "weather.toml", "office_chains.toml", "office_chains.py"):
        shutil.copy(bundled("sample_suites") / name, suites / name)
    # The samples' own server imports the SDK, which would take a third of the time of a hundred sessions.
    shutil.copy(SERVERS / "plain.py", suites)
    shutil.copy(SERVERS / "office.py", suites / "office_server.py")
    (suites / "smart_home.toml").write_text(SMART_HOME)
    (suites / "broken.toml").write_text(BROKEN)
    (suites / "hostile.toml").write_text(SMART_HOME.replace("Movie night", "\\u001b[31m[/nope]\\u202e漢\\u0000"))
    return suites


def as_text(operations: list[Deed]) -> str:
    """Return operations as text, so that they can be repeated."""
    return "\n".join(repr(deed) if len(repr(deed)) < 500 else repr(deed)[:500] + "…" for deed in operations)
