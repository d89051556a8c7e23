"""The text to copy for an item of a run, and a name for this text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from workbench.grading.grade import RunResult
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
    ServerRequestItem,
    StepItem,
    SuiteCallItem,
    SupersededItem,
    TextItem,
    ToolsItem,
)
from workbench.show.views.run_lines import lines_of
from workbench.show.visible import TOO_DEEP
from workbench.trajectory.events import JsonValue, ResultReceived

_UNBROKEN = 200
"""Width in cells at which short items fit on one line."""


def copied_text(item: Item) -> tuple[str, str]:
    """Return the text to copy for an item of a run, and a name for the text that the app shows after copying."""
    match item:
        case MessageItem() | TextItem():
            return item.text.text, "the text"
        case ToolsItem():
            return "\n".join(tool.name for tool in item.tools), "the tools' names"
        case NoticeItem():
            return item.text, "the notice"
        case SuiteCallItem(call=call):
            return f"{call.tool} {_json(call.arguments)}\n{call.content}", "the call and its result"
        case ServerRequestItem(request=asked):
            return f"{asked.message}\n{_json(asked.request)}", "the request of the server"
        case HoldItem(request=request):
            if request is None or isinstance(request, str):
                return item.why or "", "why the run is held"
            headers = (f"{name}: {value}" for name, value in request.headers)
            body = json.dumps(request.body, indent=2, ensure_ascii=False)
            return "\n".join((f"{request.method} {request.url}", *headers, "", body)), "the request"
        case ForkItem():
            return item.fork.run_id, "the id of the run that this one was forked from"
        case SupersededItem():
            texts = filter(None, (copied_text(shown)[0] for shown in item.items))
            return "\n".join(texts), "the superseded answer"
        case RoundItem(errors=errors) if errors:
            return "\n".join(errors), "the errors"
        case CallItem(edited=edited):
            written = f"{item.tool} {_as_written(item)}"
            if edited is None:
                return written, "the call"
            return f"{written}\nedited: {item.tool} {_json(edited)}", "the call as written and as edited"
        case ResultItem(result=ResultReceived() as result, unedited=ResultReceived() as unedited):
            return f"{result.content}\nit was: {unedited.content}", "the result as edited and as it was"
        case ResultItem(result=result):
            if result is None:
                return "", "the result"
            return result.content, "the result"
        case MissingItem():
            wanted = "\n".join(f"{verdict.argument} = {verdict.expected}" for verdict in item.verdicts)
            return f"{item.tool}\n{wanted}".strip(), "the expected call"
        case OutcomeItem(result=result):
            if result is None:
                return "", "the outcome"
            return _outcome(result), "the outcome"
        case StepItem():
            return _shown(item), "the step"
        case _:
            return _shown(item), "the answer's time and tokens"


def _shown(item: Item) -> str:
    return "\n".join(plain(line).strip() for line in lines_of(item, _UNBROKEN)).strip()


def _as_written(item: CallItem) -> str:
    """Return the arguments of a call as JSON, or as the model wrote them if they are not valid JSON."""
    if item.problem is None and item.arguments is not None:
        return _json(item.arguments)
    if item.raw is None:
        return "".join(item.fragments)
    return item.raw


def _outcome(result: RunResult) -> str:
    head = f"{result.case_name} [{result.model}]: {result.status}"
    return "\n".join([head, *issue_lines(result)])


def _json(arguments: Mapping[str, JsonValue]) -> str:
    try:
        return json.dumps(dict(arguments))
    except RecursionError:
        return TOO_DEEP
