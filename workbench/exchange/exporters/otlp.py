"""Traces of OpenTelemetry by its GenAI conventions: a trace for each run. The agent's span holds one for each request
of the model and one for each answered call; grades are events of the agent's span.

Here they are OTLP/JSON; `workbench.exchange.exporters.otlp_sender` makes protobuf of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from workbench.dataclasses import compact_json, json_text
from workbench.exchange.exporters.exported import ExportedRun, Said, Span, conversation, function_of, question
from workbench.grading.grade import Grade, Issue
from workbench.grading.status import Status
from workbench.trajectory.events import JsonValue, Usage
from workbench.trajectory.trajectory import CallRecord, Round
from workbench.version import __version__

Json = dict[str, JsonValue]

_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2

_FINISH_REASONS = {"answered": "stop", "tool calls": "tool_call", "truncated": "length", "refused": "content_filter"}


def lines_of_otlp(runs: Iterable[ExportedRun]) -> Iterator[str]:
    """Yields a line of OTLP/JSON for each run, as collectors write their files."""
    for run in runs:
        yield f"{compact_json({'resourceSpans': [resource_spans(run, content=True)]})}\n"


def resource_spans(run: ExportedRun, *, content: bool) -> Json:
    """Returns the trace of a run. Without `content` it holds names, counts, times and verdicts, and nothing that was
    said, called with or answered."""
    resource = {"service.name": "workbench", "service.version": __version__, "openinference.project.name": run.suite}
    scope: Json = {"name": "workbench", "version": __version__}
    spans: list[JsonValue] = list(_Trace(run, content).spans())
    return {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}


class _Trace:
    """Makes the spans of one run."""

    def __init__(self, run: ExportedRun, content: bool) -> None:
        self._run = run
        self._content = content
        self._start_ns = int(run.started.timestamp() * 1_000) * 1_000_000
        self._root = self._id("agent")

    def spans(self) -> Iterator[Json]:
        yield self._agent()
        for each in self._run.result.trajectory.rounds:
            if not each.replayed:
                yield self._chat(each)
            for call in each.calls:
                if call.result is not None and call.result.source != "replayed":
                    yield self._tool(call)

    def _agent(self) -> Json:
        run, result = self._run, self._run.result
        said = run.conversation
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.suite,
            "gen_ai.conversation.id": run.key,
            "gen_ai.request.model": result.model,
            **_used(result.usage),
            "openinference.span.kind": "AGENT",
            "workbench.suite": run.suite,
            "workbench.case": result.case_id,
            "workbench.repeat": result.repeat,
            "workbench.status": result.status,
            "workbench.score": result.score,
            "workbench.cost_usd": result.cost_usd,
        }
        if self._content:
            before = list(conversation(result, 0))
            requests = (each.message.content for each in reversed(before) if each.role == "user")
            attributes |= {
                "gen_ai.input.messages": _messages(before),
                "gen_ai.output.messages": _messages(each for each in said[-1:] if each.answer is not None),
                "input.value": next(requests, None),
                "output.value": result.trajectory.final_answer or None,
            }
        span = self._span(f"invoke_agent {result.case_name}", "agent", _INTERNAL, Span(0.0, run.ended_ms), attributes)
        if result.status in (Status.FAILED, Status.ERROR):
            span["status"] = {"code": _ERROR, "message": _valid(self._why())}
        elif result.passed:
            span["status"] = {"code": _OK}
        at = str(self._ns(run.ended_ms))
        span["events"] = [
            {"name": "gen_ai.evaluation.result", "timeUnixNano": at, "attributes": self._evaluation(grade)}
            for grade in result.grades
        ]
        return span

    def _why(self) -> str:
        result = self._run.result
        if self._content:
            return result.reason or result.status
        issues = result.grade.issues if result.grade is not None else ()
        first = next((issue for issue in issues if issue.decides), next(iter(issues), None))
        return _named(first) if first is not None else result.status

    def _evaluation(self, grade: Grade) -> list[JsonValue]:
        return _attributes(
            {
                "gen_ai.evaluation.name": grade.grader,
                "gen_ai.evaluation.score.value": grade.score,
                "gen_ai.evaluation.score.label": grade.verdict,
                "gen_ai.evaluation.explanation": grade.reason if self._content else None,
            }
        )

    def _chat(self, answer: Round) -> Json:
        run = self._run
        model = run.result.model
        reason = answer.stop_reason
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.response.finish_reasons": [_FINISH_REASONS[reason]] if reason is not None else None,
            **_used(answer.usage),
            "openinference.span.kind": "LLM",
            "workbench.round": answer.number,
            "workbench.retries": answer.retries or None,
            "workbench.first_token_ms": answer.first_token_ms,
        }
        if self._content:
            asked = question(run.result, answer)
            systems = [each.message.content for each in asked if each.role == "system"]
            attributes |= {
                "gen_ai.system_instructions": _json([{"type": "text", "content": text} for text in systems[-1:]]),
                "gen_ai.input.messages": _messages(asked),
                "gen_ai.output.messages": _messages(
                    each for each in run.conversation if each.answer is answer and reason is not None
                ),
                "gen_ai.tool.definitions": _json([_tool_definition(function_of(tool)) for tool in run.tools]),
            }
        times = run.requests.get(answer.number, Span(0.0, 0.0))
        span = self._span(f"chat {model}", f"chat {answer.number}", _CLIENT, times, attributes)
        if reason is None:
            said = answer.errors[-1] if self._content and answer.errors else "the request was not answered"
            span["status"] = {"code": _ERROR, "message": _valid(said)}
        return span

    def _tool(self, record: CallRecord) -> Json:
        call, result = record.sent, record.result
        assert result is not None
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "openinference.span.kind": "TOOL",
            "workbench.source": result.source,
            "workbench.server": record.server,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = call.raw if call.problem else json_text(dict(call.arguments))
            attributes["gen_ai.tool.call.result"] = result.content
        times = self._run.answers.get(call.id, Span(0.0, 0.0))
        span = self._span(f"execute_tool {call.tool}", f"tool {call.id}", _INTERNAL, times, attributes)
        if result.is_error:
            span["status"] = {"code": _ERROR, "message": "the tool answered with an error"}
        return span

    def _span(self, name: str, which: str, kind: int, times: Span, attributes: Mapping[str, object]) -> Json:
        parent: Json = {} if which == "agent" else {"parentSpanId": self._root}
        return {
            "traceId": self._run.key,
            "spanId": self._id(which),
            **parent,
            "name": _valid(name),
            "kind": kind,
            "startTimeUnixNano": str(self._ns(times.start_ms)),
            "endTimeUnixNano": str(self._ns(times.end_ms)),
            "attributes": _attributes(attributes),
        }

    def _id(self, which: str) -> str:
        return hashlib.sha256(f"{self._run.key} {which}".encode(errors="surrogatepass")).hexdigest()[:16]

    def _ns(self, ms: float) -> int:
        return self._start_ns + int(ms * 1e6)


def _named(issue: Issue) -> str:
    """Returns an issue by names alone."""
    where = ".".join(filter(None, (issue.tool, issue.argument)))
    return f"{issue.kind}: {where}" if where else issue.kind


def _used(usage: Usage | None) -> dict[str, object]:
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
    }


def _tool_definition(function: Json) -> JsonValue:
    inner = function["function"]
    assert isinstance(inner, dict)
    return {"type": "function", **inner}


def _messages(said: Iterable[Said]) -> str | None:
    """Returns messages as the conventions write them, without system prompts, which have a place of their own."""
    return _json([_message(each) for each in said if each.role != "system"])


def _message(said: Said) -> JsonValue:
    message, answer = said.message, said.answer
    parts: list[JsonValue] = []
    if answer is not None and answer.reasoning:
        parts.append({"type": "reasoning", "content": answer.reasoning})
    if message.call_id is not None:
        failed: Json = {"is_error": True} if message.is_error else {}
        parts.append({"type": "tool_call_response", "id": message.call_id, "response": message.content, **failed})
    elif message.content or not message.tool_calls:
        parts.append({"type": "text", "content": message.content})
    for call in message.tool_calls:
        arguments: JsonValue = call.raw if call.problem is not None else dict(call.arguments)
        parts.append({"type": "tool_call", "id": call.id, "name": call.tool, "arguments": arguments})
    table: Json = {"role": said.role, "parts": parts}
    if answer is not None and answer.stop_reason is not None:
        table["finish_reason"] = _FINISH_REASONS[answer.stop_reason]
    return table


def _json(values: list[JsonValue]) -> str | None:
    return compact_json(values) if values else None


def _attributes(values: Mapping[str, object]) -> list[JsonValue]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items() if value is not None]


def _any_value(value: object) -> JsonValue:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_any_value(each) for each in value]}}
        case _:
            return {"stringValue": _valid(str(value))}


def _valid(text: str) -> str:
    """Returns a text as UTF-8 can express it, which is all that protobuf takes."""
    return text.encode(errors="replace").decode()
