"""The text that is copied from a run: one item, in full."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.show.spans import plain
from workbench.show.views.grades import issue_lines
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
    from workbench.grading.grade import RunResult


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
        case HoldItem(request=request):
            if request is None or isinstance(request, str):
                return item.why or "", "why the run is held"
            headers = (f"{name}: {value}" for name, value in request.headers)
            body = json.dumps(request.body, indent=2, ensure_ascii=False)
            return "\n".join((f"{request.method} {request.url}", *headers, "", body)), "the request"
        case ForkItem():
            return item.fork.run_id, "the id of the run that this one was forked from"
        case SetAsideItem():
            return "\n".join(filter(None, (copied_text(shown)[0] for shown in item.items))), "the superseded answer"
        case RoundItem(errors=errors) if errors:
            return "\n".join(errors), "the errors"
        case CallItem(edited=edited):
            written = item.raw if item.raw is not None else "".join(item.fragments)
            if item.problem is None and item.arguments is not None:
                written = _json(item.arguments)
            if edited is None:
                return f"{item.tool} {written}", "the call"
            return f"{item.tool} {written}\nedited: {item.tool} {_json(edited)}", "the call as written and as edited"
        case ResultItem(unedited=unedited):
            content = item.result.content if item.result is not None else ""
            if unedited is None:
                return content, "the result"
            return f"{content}\nit was: {unedited.content}", "the result as edited and as it was"
        case MissingItem():
            wanted = "\n".join(f"{verdict.argument} = {verdict.expected}" for verdict in item.verdicts)
            return f"{item.tool}\n{wanted}".strip(), "the expected call"
        case OutcomeItem(result=result):
            return _outcome(result) if result is not None else "", "the outcome"
        case _:
            shown = "\n".join(plain(line).strip() for line in lines_of(item, _UNBROKEN)).strip()
            return shown, "the step" if isinstance(item, StepItem) else "the answer's time and tokens"


def _outcome(result: RunResult) -> str:
    head = f"{result.case_name} [{result.model}]: {result.status}"
    return "\n".join([head, *issue_lines(result)])


def _json(arguments: Mapping[str, JsonValue]) -> str:
    try:
        return json.dumps(dict(arguments))
    except RecursionError:
        return TOO_DEEP
