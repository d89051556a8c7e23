"""The HTML report: one file without any other, which asks no network for anything.

The page is a head, blocks of data, and a script that shows them. Blocks are JSON, compressed and in base64, so that
nothing in them can be markup; those of runs are read when one of their runs is unfolded.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import chain
from typing import Any, Literal, TypeVar

from workbench.dataclasses import json_text
from workbench.grading.status import Status
from workbench.show.html.records import PageCase, PageFacts, PageHead, PageRun, page_run
from workbench.show.json.base import ReportModel
from workbench.show.json.writing import Records
from workbench.show.views.runs_report import Redactor, ShownRun
from workbench.show.visible import one_line
from workbench.version import __version__

Kind = Literal["head", "cases", "facts", "runs"]

_SCRIPTS = ("base.js", "data.js", "charts.js", "overview.js", "matrix.js", "run.js", "pair.js", "page.js")
"""The parts of the script, in their order."""

_BLOCK_RUNS = 100
"""Runs in a block: so many are unpacked to see one of them."""
_BLOCK_FACTS = 5_000
_BLOCK_CHARACTERS = 1 << 20
"""A block ends when it holds more than this."""
_GZIP = 31
"""What zlib calls gzip with the largest window, which browsers unpack."""

_Item = TypeVar("_Item")


def page_pieces(
    head: PageHead,
    cases: Iterable[PageCase],
    facts: Iterable[object],
    runs: Iterable[ShownRun],
    redactor: Redactor,
    figures: Iterable[str] = (),
) -> Iterator[str]:
    """Yields the page without secrets; cases, facts and runs are taken one after the other. `facts` are what
    `PageFacts` are made of, `figures` markup that needs no script and holds no secrets."""
    shown = redactor.redacted(head)
    yield from _begin(shown)
    # The script moves them among its charts.
    yield from ('<section id="figures" class="page charts">', *figures, "</section>\n")
    yield from _block("head", [json_text(shown.model_dump(mode="json"))])
    yield from _blocks("cases", PageCase, cases, lambda case: case, redactor, _BLOCK_FACTS)
    yield from _blocks("facts", PageFacts, facts, lambda fact: fact, redactor, _BLOCK_FACTS)
    yield from _blocks("runs", PageRun, runs, page_run, redactor, _BLOCK_RUNS)
    yield f"<script>{_script()}</script>\n</body>\n</html>\n"


def _begin(head: PageHead) -> Iterator[str]:
    yield from begin_page(head.title, part("page.css"), _script(), head.report.workbench)
    # What can be said without the script: some viewers of artifacts let no script run.
    yield f'<noscript><main class="page"><h1>{line(head.verdict.text)}</h1>\n'
    yield from (f"<p>{line(detail)}</p>\n" for detail in head.verdict.details)
    yield "<p>Cases and runs are shown by the script of this page, which does not run here.</p></main></noscript>\n"


def begin_page(title: str, style: str, script: str, version: str = __version__) -> Iterator[str]:
    """Yields a page up to its body, for that style and script and nothing else."""
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
    """Returns a text as a line of the page, which nothing in it can end."""
    return escape(one_line(text))


def _blocks(
    kind: Kind,
    model: type[ReportModel],
    items: Iterable[_Item],
    source_of: Callable[[_Item], object],
    redactor: Redactor,
    most: int,
) -> Iterator[str]:
    """Yields the records of `items` in blocks of at most so many, each with the number of its first record."""
    waiting, first = iter(items), 0
    for item in waiting:
        block = _Block(chain((item,), waiting), most)
        pieces = Records(model, block, source_of).pieces("", redactor)
        yield from _block(kind, block.measured(pieces), first)
        first += block.count


class _Block:
    """Lets items through until there are enough of them, or enough was written."""

    def __init__(self, items: Iterator[Any], most: int) -> None:
        self._items = items
        self._most = most
        self._written = 0
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        while self.count < self._most and self._written < _BLOCK_CHARACTERS:
            for item in self._items:
                self.count += 1
                yield item
                break
            else:
                return

    def measured(self, pieces: Iterable[str]) -> Iterator[str]:
        for piece in pieces:
            self._written += len(piece)
            yield piece


def _block(kind: Kind, pieces: Iterable[str], first: int = 0) -> Iterator[str]:
    """Yields JSON as a block of the page."""
    packer = zlib.compressobj(level=6, wbits=_GZIP)
    rest = b""
    yield f'<script type="application/octet-stream" data-kind="{kind}" data-first="{first}">'
    for piece in pieces:
        packed = rest + packer.compress(piece.encode())
        whole = len(packed) - len(packed) % 3  # three bytes are four characters
        rest = packed[whole:]
        if whole:
            yield b64encode(packed[:whole]).decode()
    yield f"{b64encode(rest + packer.flush()).decode()}</script>\n"


@cache
def part(name: str) -> str:
    """Returns a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    parts = ("sign", "word", "counted", "role", "urgency", "graded", "total")
    statuses = {status.value: {name: getattr(status, name) for name in parts} for status in Status}
    return f'"use strict";\nconst STATUS = {json_text(statuses)};\n' + "".join(map(part, _SCRIPTS))


def _hash(text: str) -> str:
    """Returns what a content security policy calls a text by."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
