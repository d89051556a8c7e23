"""Searches a run: the number of matches in an item."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from workbench.show.lazy_lines import compact_json
from workbench.show.views.by_hand import fork_text
from workbench.show.views.grades import issue_note, issue_text
from workbench.show.visible import visible
from workbench.trajectory.events import JsonValue
from workbench.tui.run_book.shown.items import (
    CallItem,
    ForkItem,
    HoldItem,
    Item,
    MessageItem,
    MissingItem,
    NoticeItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    SetAsideItem,
    StepItem,
    TextItem,
    ToolsItem,
)
from workbench.tui.trajectory.call_lines import MAX_RESULT_CHARS

if TYPE_CHECKING:
    from workbench.providers.model import HttpRequest


def times_in(item: Item, pattern: re.Pattern[str]) -> int:
    """Return the number of matches in an item when expanded."""
    return sum(1 for _ in pattern.finditer(visible(_searched_text(item))))


def _searched_text(item: Item) -> str:
    match item:
        case MessageItem():
            calls = [f"{call.tool} {_json(dict(call.arguments))}" for call in item.calls]
            return "\n".join([item.text.text, *calls])
        case TextItem():
            return item.text.text
        case ToolsItem():
            return "\n".join(f"{tool.name}\n{tool.description}" for tool in item.tools)
        case NoticeItem():
            return item.text
        case StepItem():
            return "\n".join([item.name, item.grade.why if item.grade is not None else ""])
        case HoldItem():
            return "\n".join([item.why or "", *_request_texts(item.request)])
        case ForkItem():
            return fork_text(item.fork, item.origin)
        case SetAsideItem():
            return "\n".join(_searched_text(shown) for shown in item.items)
        case RoundItem():
            return "\n".join(item.errors)
        case CallItem():
            return "\n".join(_call_texts(item))
        case ResultItem():
            return _result_text_searched(item)
        case MissingItem():
            wanted = [f"{verdict.argument} {verdict.expected}" for verdict in item.verdicts]
            return "\n".join([f"{item.tool} expected, never called", *wanted])
        case OutcomeItem():
            return _outcome_text_searched(item)


def _request_texts(request: HttpRequest | str | None) -> list[str]:
    if request is None or isinstance(request, str):
        return [request or ""]
    headers = [f"{name}: {value}" for name, value in request.headers]
    return [f"{request.method} {request.url}", *headers, _json(request.body)]


def _call_texts(item: CallItem) -> list[str]:
    if item.arguments is None:
        return [item.tool, "".join(item.fragments)]
    parts = [item.tool, item.problem or "", item.raw or ""] if item.problem is not None else [item.tool]
    judged = {verdict.argument: verdict for verdict in item.verdicts}
    for name, value in item.arguments.items() if item.problem is None else ():
        verdict = judged.pop(name, None)
        wanted = f" expected {verdict.expected}" if verdict is not None and verdict.holds is False else ""
        parts.append(f"{name} {_json(value)}{wanted}")
    parts += [f"{verdict.argument} expected {verdict.expected}" for verdict in judged.values() if not verdict.given]
    edited = item.edited.items() if item.edited is not None else ()
    parts += [f"{name} {_json(value)}" for name, value in edited if item.arguments.get(name) is not value]
    apart = (issue for issue in item.issues if issue.argument is None or issue.kind == "schema violation")
    return [*parts, *map(issue_note, apart)]


def _result_text_searched(item: ResultItem) -> str:
    if item.result is None:
        return "\n".join(filter(None, (item.asks, item.held)))
    texts = [item.result.content, *([item.unedited.content] if item.unedited is not None else [])]
    return "\n".join([*(_content(text[:MAX_RESULT_CHARS]) for text in texts), item.held or ""])


def _content(content: str) -> str:
    if content[:1] in ("{", "["):
        try:
            return _json(json.loads(content))  # with blanks and escapes as displayed
        except (ValueError, RecursionError):
            pass  # not JSON: displayed unchanged
    return content


def _outcome_text_searched(item: OutcomeItem) -> str:
    if item.result is None:
        return ""
    issues = [issue_text(issue) for issue in item.issues]
    return "\n".join([item.result.status, item.result.error or "", *issues])


def _json(value: JsonValue) -> str:
    return compact_json(value, MAX_RESULT_CHARS)
