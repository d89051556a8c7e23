"""The parsed page of an HTML report."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import workbench

SUITE = """format = 1
name = "Clock </script><b>"
system = "Use the tools."

[[tools]]
name = "get_time"
description = "The current time in a time zone."
parameters = { type = "object", required = ["timezone"], properties = { timezone = { type = "string" } } }

[[mocks]]
tool = "get_time"
result = "It is 12:00 in {timezone}. <script>alert(1)</script>"

[[cases]]
name = "Time in Bergen"
user = "What time is it in Bergen?"
tags = ["time"]
[[cases.ordered]]
tool = "get_time"
args = { timezone = { one_of = ["Europe/Oslo", "CET"] } }

[[cases]]
name = "Two zones"
user = "What time is it in Bergen and in Lima?"
tags = ["time", "two"]
[[cases.ordered]]
tool = "get_time"
args = { timezone = "Europe/Oslo" }
[[cases.ordered]]
tool = "get_time"
args = { timezone = "America/Lima" }

[[cases]]
name = "Small talk <img src=x onerror=alert(1)>"
user = "How are you?"
expect_no_calls = true
"""

HOSTILE = (
    "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    "<!-- ]]> --> <svg onload=alert(1)> javascript:alert(1) &lt; \u202eabc\u2028\u2029\x00\x07\x1b[31m \ud800 "
    "<style>*{display:none}</style> <meta http-equiv=refresh content='0;url=https://example.com'>"
)
"""A hostile answer with a lone surrogate."""


async def careful(request: workbench.AgentRequest) -> workbench.AgentReply:
    """Get everything right, with hostile texts."""
    if request.results or "time" not in request.prompt:
        return workbench.AgentAnswer(HOSTILE, reasoning="so be it", usage=workbench.Usage(100, 20))
    calls = [workbench.call("get_time", timezone="Europe/Oslo")]
    if "Lima" in request.prompt:
        calls.append(workbench.call("get_time", timezone="America/Lima", extra=12345678901234567890, half=1.0))
    return workbench.AgentAnswer("Let me see.", calls)


async def hasty(request: workbench.AgentRequest) -> workbench.AgentReply:
    """Look up one wrong time zone for everything."""
    if request.results:
        return "It is noon."
    return workbench.call("get_time", timezone="Mars/</script>")


def evaluated(folder: Path, *, repeats: int = 1) -> workbench.Report:
    """Evaluate both agents on the suite, write the report into `folder`, and return it."""
    path = folder / "clock.toml"
    path.write_text(SUITE, encoding="utf-8")
    models = [workbench.Agent(careful, name="careful"), workbench.Agent(hasty, name="hasty <i>")]
    return workbench.evaluate(path, models=models, repeats=repeats)


@dataclass
class Page(HTMLParser):
    """The elements of a page in order, with the content of scripts and styles, and its blocks of data."""

    text: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    data: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    """The texts of the overview, which needs no script."""
    is_inside: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)
        self.close()
        for (name, attributes), inside in zip(self.elements, self.inside, strict=True):
            kind = attributes.get("data-kind")
            if name == "script" and kind is not None:
                unpacked = json.loads(gzip.decompress(b64decode(inside)))
                self.data.setdefault(kind, []).append((int(attributes["data-first"] or ""), unpacked))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_inside = True
        self.elements.append((tag, dict(attrs)))
        self.inside.append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_inside = False

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            self.inside[-1] += data
        if self.elements and self.elements[-1][0] not in ("script", "style"):
            self.texts.append(data)

    def of(self, name: str) -> list[tuple[dict[str, str | None], str]]:
        """Return the elements of a name: their attributes, and the text after their start tag."""
        pairs = zip(self.elements, self.inside, strict=True)
        return [(attributes, inside) for (tag, attributes), inside in pairs if tag == name]

    def records(self, kind: str) -> list[Any]:
        """Return all records of a kind."""
        return [record for _, block in self.data.get(kind, []) for record in block]

    @property
    def said(self) -> str:
        """The text of the overview."""
        return "".join(self.texts)

    @property
    def runs(self) -> list[str]:
        """The text of each unfolded run."""
        return [text_of(run["view"]) for run in self.records("runs")]

    @property
    def head(self) -> Any:
        ((_, head),) = self.data["head"]
        return head


def text_of(tree: Any) -> str:
    """Return the text of an element in the data."""
    return tree if isinstance(tree, str) else "".join(map(text_of, tree[2:]))


def elements_of(tree: Any, name: str) -> list[str]:
    """Return the texts of all elements of a class."""
    if isinstance(tree, str):
        return []
    here = [text_of(tree)] if name in tree[1].get("class", "").split() else []
    return here + [text for child in tree[2:] for text in elements_of(child, name)]


def page_of(report: workbench.Report) -> Page:
    return Page("".join(report.pieces("html")))
