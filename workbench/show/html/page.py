"""The HTML report: one file that loads nothing else, neither from disk nor from the network.

The page has an overview as markup, blocks of data, and a script that draws cases and runs from the blocks. A block is
compressed JSON in base64, which cannot be read as markup. The script unpacks a block of runs when the user unfolds one
of its runs."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import islice
from typing import Literal

from workbench.dataclasses import json_text
from workbench.grading.status import Status
from workbench.show.html.elements import Node, el, flat, markup
from workbench.show.html.records import PageCase, PageFacts, PageHead
from workbench.show.html.run import page_run
from workbench.show.views.runs_report import ShownRun, TextRedactor
from workbench.show.visible import one_line
from workbench.version import __version__

Kind = Literal["head", "cases", "facts", "runs"]

_SCRIPTS = ("base.js", "matrix.js", "run.js", "page.js")
"""The parts of the script. Each part needs only the parts before it."""

_BLOCK_RUNS = 100
"""Number of runs in a block. Showing one run unpacks its whole block."""
_BLOCK_FACTS = 5_000
_BLOCK_CHARACTERS = 1 << 20
"""Number of characters of JSON at which a block ends."""
_GZIP = 31
"""Window size that makes zlib write gzip, which browsers unpack."""

_KEYS = (
    "Arrow keys move between cells, Enter unfolds one, Escape closes it, / goes to the filter. The address after #"
    " holds what is shown, for a link."
)


def page_pieces(
    title: str,
    overview: Iterable[Node],
    style: str,
    head: PageHead,
    cases: Iterable[PageCase],
    facts: Iterable[PageFacts],
    runs: Iterable[ShownRun],
    redactor: TextRedactor,
    version: str,
) -> Iterator[str]:
    """Yield the pieces of the HTML page without secrets, reading cases, facts and runs one at a time.

    `style` is the CSS of this kind of page. It is written after the CSS that all pages have in common."""
    yield from begin_page(redactor.redact(title), part("page.css") + style, _script(), version)
    yield '<main class="page">\n'
    for each in flat(overview):
        yield from markup(each, redactor.redact)
    # This note is shown where scripts do not run, as in some viewers of build artifacts.
    note = el("p", "Cases and runs are shown by the script of this page, which does not run here.")
    for each in (el("div", id="cases-place"), el("noscript", note), el("footer", _KEYS, class_="quiet")):
        yield from markup(each, str)
    yield "</main>\n"
    yield from _block("head", [_record(head, redactor)])
    yield from _blocks("cases", (_record(case, redactor) for case in cases), _BLOCK_FACTS)
    yield from _blocks("facts", (_record(each, redactor) for each in facts), _BLOCK_FACTS)
    yield from _blocks("runs", (_run(run, redactor) for run in runs), _BLOCK_RUNS)
    yield f"<script>{_script()}</script>\n</body>\n</html>\n"


def _run(run: ShownRun, redactor: TextRedactor) -> str:
    # The run is already redacted, but the page joins several of its texts, and a joined text may hold a secret.
    text = json_text(page_run(run, str))
    if redactor.json_may_contain(text):
        return json_text(page_run(run, redactor.redact))
    return text


def _record(record: PageHead | PageCase | PageFacts, redactor: TextRedactor) -> str:
    return json_text(asdict(redactor.redacted(record)))


def begin_page(title: str, style: str, script: str, version: str = __version__) -> Iterator[str]:
    """Yield the page up to its body. A content security policy permits only this style and this script."""
    # Unlike a nonce, a hash needs no server. Even if a model's text became markup, it could not run or load anything.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
    yield f'<meta name="generator" content="{line(f"Workbench {version}")}">\n'
    yield f"<title>{line(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"


def line(text: str) -> str:
    """Return a text on one line, escaped for HTML."""
    return escape(one_line(text))


def _blocks(kind: Kind, records: Iterable[str], block_size: int) -> Iterator[str]:
    """Yield data blocks with at most `block_size` records each. A block also holds the index of its first record."""
    waiting, first = iter(records), 0
    while block := [*_of_a_block(waiting, block_size)]:
        yield from _block(kind, _listed(block), first)
        first += len(block)


def _of_a_block(records: Iterator[str], block_size: int) -> Iterator[str]:
    size = 0
    for text in islice(records, block_size):
        yield text
        size += len(text)
        if size >= _BLOCK_CHARACTERS:
            return


def _listed(records: Iterable[str]) -> Iterator[str]:
    before = "["
    for record in records:
        yield f"{before}{record}"
        before = ","
    yield "]"


def _block(kind: Kind, pieces: Iterable[str], first: int = 0) -> Iterator[str]:
    """Yield JSON as one compressed data block of the page."""
    packer = zlib.compressobj(level=6, wbits=_GZIP)
    rest = b""
    yield f'<script type="application/octet-stream" data-kind="{kind}" data-first="{first}">'
    for piece in pieces:
        packed = rest + packer.compress(piece.encode())
        # Base64 encodes three bytes as four characters. The remaining bytes wait for the next piece, because padding is
        # allowed only at the end.
        whole = len(packed) - len(packed) % 3
        rest = packed[whole:]
        if whole:
            yield b64encode(packed[:whole]).decode()
    yield f"{b64encode(rest + packer.flush()).decode()}</script>\n"


@cache
def part(name: str) -> str:
    """Return the text of a file that is part of the page's code."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    parts = ("sign", "word", "role", "urgency")
    statuses = {}
    for status in Status:
        statuses[status.value] = {name: getattr(status, name) for name in parts}
    return f'"use strict";\nconst STATUS = {json_text(statuses)};\n' + "".join(map(part, _SCRIPTS))


def _hash(text: str) -> str:
    """Return the hash of a text in the notation of a content security policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
