"""The text that is copied from a run: one item, in full."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.show.spans import plain
from workbench.show.views.grades import issue_text
from workbench.show.views.run_items import (
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
from workbench.show.views.run_lines import lines_of
from workbench.show.visible import TOO_DEEP
from workbench.trajectory.events import JsonValue

if TYPE_CHECKING:
    from workbench.providers.model import HttpRequest


_UNBROKEN = 200
"""The width in which short items fit on one line."""


def copied_text(item: Item) -> tuple[str, str]:
    """Return the text of an item, in full, and its name for the notice."""
    match item:
        case MessageItem() | TextItem():
            return item.text.text, "the text"
        case ToolsItem():
            return "\n".join(tool.name for tool in item.tools), "the tools' names"
        case NoticeItem():
            return item.text, "the notice"
        case StepItem():
            return _shown(item), "the step"
        case HoldItem():
            if item.request is not None and not isinstance(item.request, str):
                return _request_text(item.request), "the request"
            return item.why or "", "why the run is held"
        case ForkItem():
            return item.fork.run_id, "the id of the run that this one was forked from"
        case SetAsideItem():
            return "\n".join(filter(None, (copied_text(shown)[0] for shown in item.items))), "the superseded answer"
        case RoundItem():
            if item.errors:
                return "\n".join(item.errors), "the errors"
            return _shown(item), "the answer's time and tokens"
        case CallItem():
            return _call_text(item), "the call" if item.edited is None else "the call as written and as edited"
        case ResultItem():
            return _result_text(item), "the result" if item.unedited is None else "the result as edited and as it was"
        case MissingItem():
            wanted = "\n".join(f"{verdict.argument} = {verdict.expected}" for verdict in item.verdicts)
            return f"{item.tool}\n{wanted}".strip(), "the expected call"
        case OutcomeItem():
            return _outcome_text(item), "the outcome"


def _shown(item: Item) -> str:
    return "\n".join(plain(line).strip() for line in lines_of(item, _UNBROKEN)).strip()


def _request_text(request: HttpRequest) -> str:
    headers = (f"{name}: {value}" for name, value in request.headers)
    return "\n".join(
        (f"{request.method} {request.url}", *headers, "", json.dumps(request.body, indent=2, ensure_ascii=False))
    )


def _call_text(item: CallItem) -> str:
    if item.problem is not None or item.arguments is None:
        written = item.raw if item.raw is not None else "".join(item.fragments)
    else:
        written = _json(item.arguments)
    edited = f"\nedited: {item.tool} {_json(item.edited)}" if item.edited is not None else ""
    return f"{item.tool} {written}{edited}"


def _result_text(item: ResultItem) -> str:
    content = item.result.content if item.result is not None else ""
    return content if item.unedited is None else f"{content}\nit was: {item.unedited.content}"


def _json(arguments: Mapping[str, JsonValue]) -> str:
    try:
        return json.dumps(dict(arguments))
    except RecursionError:
        return TOO_DEEP


def _outcome_text(item: OutcomeItem) -> str:
    result = item.result
    if result is None:
        return ""
    issues = [issue_text(issue) for issue in (result.grade.issues if result.grade is not None else ())]
    head = f"{result.case_name} [{result.model}]: {result.status}"
    return "\n".join([head, *([result.error] if result.error else []), *issues])
