"""Writes a case from nothing over a link of 50 kB/s, at 80×24: `python -m benchmarks.slow_link`, from the root of the
repository.

Prints, for each step, when its result was on the screen, and the number of bytes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.sizes import sized
from tests.tui.in_terminal import Terminal

LINK_BYTES_PER_S = 50_000
QUIET_S = sized(0.6, 0.1)
DOWN = "\x1b[B"

STEPS = (
    ("a new suite", "Nlights\r", "New suite lights.toml"),
    ("its TOML", "oe\x1b[1;5F\r", "Esc done"),
    (
        "a tool and a case, pasted",
        '\x1b[200~[[tools]]\nname = "set_light"\ndescription = "Turn the light of a room on or off."\n'
        '[tools.parameters]\ntype = "object"\nrequired = ["room"]\n[tools.parameters.properties]\n'
        'room = { enum = ["bathroom", "kitchen"] }\n[[cases]]\nname = "Kitchen light"\n'
        'user = "Turn on the light in the kitchen."\n\x1b[201~',
        "in the kitchen.",
    ),
    ("typing ended", "\x1b", "Enter type"),
    ("the case", f"o1{DOWN}2", "name         Kitchen light"),
    ("a call", "+set_light\r", "is  bathroom"),
    ("its value, chosen", f"{DOWN}\r{DOWN}\r", "is  kitchen"),
    ("run", "r", "✓ passed"),
    ("the other way", "2\r\x1b[A\r", "bathroom"),
    ("run again", "r", "✗ failed"),
    ("to be accepted", "3A", "Enter accept"),
    ("accepted", "\r", "accepted 1 call"),
    ("undone", "\x1a", "Undone:"),
    ("done again", "\x19", "Redone:"),
    ("saved", "\x13", "Saved in"),
)
"""The steps: a description, the keys, and the text that appears."""


def main() -> None:
    with tempfile.TemporaryDirectory() as state, tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        terminal = Terminal(
            ["."], Path(state), columns=80, rows=24, folder=Path(folder), bytes_per_s=LINK_BYTES_PER_S, starts=True
        )
        with terminal:
            terminal.wait_for("No suites here.")
            terminal.quiet(QUIET_S)
            _say("the first screen", began, QUIET_S, len(terminal.output))
            for said, keys, seen in STEPS:
                written, began = len(terminal.output), time.monotonic()
                terminal.send(keys)
                terminal.wait_for(seen)
                waited_s = time.monotonic()
                terminal.quiet(QUIET_S)
                _say(said, began, time.monotonic() - waited_s, len(terminal.output) - written)


def _say(said: str, began: float, quiet_s: float, written: int) -> None:
    print(f"{said:<24}{(time.monotonic() - began - quiet_s) * 1000:7.0f} ms{written:9,} bytes")


if __name__ == "__main__":
    main()
