"""A server counts as typed only if single keys made all of it, without a paste or a completion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.events import Paste

from tests.tui.form_app import Typist, form_of
from workbench.authoring.document import HEAD
from workbench.authoring.open_suite import OpenSuite

SUITE = 'format = 1\nname = "S"\n\n[[cases]]\nname = "A"\nuser = "Do it."\n'


async def do(typist: Typist, steps: Sequence[str]) -> None:
    """Type texts. A step that begins with `!` presses keys, `#` pastes, `/` goes to a row, `@` leaves the form."""
    for step in steps:
        match step[0]:
            case "!":
                await typist.press(*step[1:].split())
            case "#":
                typist.app.post_message(Paste(step[1:]))
                await typist.press()
            case "/":
                inside: tuple[str | int, ...] = (0, *step[1:].split("/"))
                typist.app.go_to(("servers", *inside) if step[1:] else ("servers",))
            case "@":
                for index in (0, HEAD):
                    typist.app.index = index
                    typist.app.show()
                    await typist.press()
            case _:
                await typist.type(step)


ROWS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("uvx tiem", "!backspace backspace", "me\n"), "uvx time"),
    (("!end", " x\n"), "python server.py x"),
    (("uvx\n", "/cwd", "!enter", "sub\n", "/env", "!plus", "A\n", "b\n"), "uvx"),
    (("!escape", "!left enter down enter", "http://x\n"), "http://x"),
    # Enter in the field as it was opened.
    (("!enter",), None),
    # Pastes, by the terminal and by Textual's own key.
    (("#evil", " x\n"), None),
    (("#a\nb\n", "!enter"), None),
    (("uvx time", "!shift+home", "!ctrl+v", "!enter"), None),
    (("uvx\n", "/env", "!plus", "#LD_PRELOAD", "!enter", "b\n"), None),
    # An invalid text was pasted, and a letter completes it after its field was opened again.
    (("#sh -c 'evil", "@", "/command", "!right enter", "'\n"), None),
)
MORE: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("uvx time\n",), "uvx time"),
    (("uvx x", "!ctrl+u", "uvx time\n"), "uvx time"),
    (("uvx\n", "/env", "!plus", "A\n", "b\n", "/env/A", "!delete"), "uvx"),
    (("uvx x\n", "/command", "!right enter", "evil", "!escape"), "uvx x"),
    (("!escape",), None),
    (("python server.py\n",), None),
    (("#evil", "!enter"), None),
    (("uvx ", "#evil", "!enter"), None),
    (("uvx ", "#evil", "!backspace", "l\n"), None),
    (("!ctrl+v", "!enter"), None),
    (("uvx\n", "/env", "!plus", "A\n", "#evil", "!enter"), None),
    (("uvx x\n", "/command", "!right enter", "#sh -c 'evil", "'\n"), None),
)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [ROWS, pytest.param(MORE, marks=pytest.mark.slow)], ids=["few", "more"])
async def test_a_server_counts_as_typed_if_single_keys_made_it(
    rows: Sequence[tuple[Sequence[str], str | None]],
) -> None:
    async with form_of(SUITE, HEAD, (60, 40)) as typist:
        typist.app.copy_to_clipboard("from elsewhere")
        for steps, typed in rows:
            typist.app.suite = OpenSuite.new(Path("home.toml"), SUITE)
            await do(typist, ("@", "/", "!plus", "time\n", *steps, "@"))
            added = [server.now for server in typist.app.suite.typed_servers if server.before is None]
            whole = [server.url or " ".join(server.command or ()) for server in added]
            assert whole == ([] if typed is None else [typed]), (steps, typist.says("servers"))
