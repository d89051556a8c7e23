"""The results of promptfoo (version 3 of its output): each test with a prompt is a case, each answer to it a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from workbench.importing.bounds import RefusedError
from workbench.importing.conversations import case_of
from workbench.importing.imported import ImportedCase, ImportedRun, Mapped, Note, not_imported
from workbench.importing.messages import conversation_of, number_of
from workbench.importing.promptfoo_cases import case_of_test, conversation_of_prompt
from workbench.importing.reading import Node
from workbench.suite.numerals import counted
from workbench.suite.render import Table
from workbench.trajectory.events import SourceScore
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.typed_json import json_text, parsed_json

_CALLS = ("tool_use", "function_call")


def results_in(root: Node) -> list[Node]:
    """Returns the results in a file of results, empty for any other file."""
    inner = root.get("results")
    listed = inner.get("results") if inner is not None else None
    rows = listed.items() if listed is not None and isinstance(listed.value, list) else []
    return rows if all(row.has("testCase", "prompt") for row in rows) else []


def cases_of_results(
    results: list[Node], tools: tuple[Table, ...], model_of: Callable[[str], str | None], notes: list[Note]
) -> list[ImportedCase]:
    """Returns a case of each test with a prompt, with the runs of it. What cannot be taken is added to the notes."""
    groups: dict[str, list[Node]] = {}
    for result in results:
        prompt, values = result.get("prompt"), result.get("vars")
        raw = prompt.text_of("raw") if prompt is not None else ""
        key = json_text([raw, values.value if values is not None else None, result.text_of("description")])
        number = result.get("testIdx")
        groups.setdefault(f"{number.value if number is not None else ''} {key}", []).append(result)
    cases: list[ImportedCase] = []
    for group in groups.values():
        try:
            cases.append(_case(group, tools, model_of))
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    return cases


def _case(group: list[Node], tools: tuple[Table, ...], model_of: Callable[[str], str | None]) -> ImportedCase:
    first = group[0]
    test, given = first.need("testCase"), first.get("vars")
    values = given.table() if given is not None else {}
    raw = first.need("prompt").need("raw")
    asserts = test.get("assert")
    listed = asserts.items() if asserts is not None else []
    conversation = conversation_of_prompt(raw)
    case = case_of_test(test, listed, conversation, values, tools, test.text_of("description"))
    runs: list[ImportedRun] = []
    notes: list[Note] = []
    passed = 0
    for result in group:
        answer = result.get("response")
        if answer is None or not answer.has("output"):
            why = (answer or result).text_of("error") or "it holds no output"
            notes.append(Note(result.place, f"a run is not imported: {why}"))
            continue
        run = _run(result, answer, raw, tools, model_of)
        runs.append(replace(run, scores=_scores(result)))
        success = result.get("success")
        passed += success is not None and success.value is True
    verdicts = f"recordings; promptfoo's verdicts: {passed} passed, {len(runs) - passed} failed"
    mapped = (*case.mapped, Mapped(counted(len(runs), "result"), verdicts)) if runs else case.mapped
    return replace(case, place=first.place, mapped=mapped, runs=tuple(runs)).noted(*notes)


def _scores(result: Node) -> tuple[SourceScore, ...]:
    """Return promptfoo's own score and verdict."""
    success, score = result.get("success"), number_of(result.get("score"))
    if success is None or not isinstance(success.value, bool):
        return ()
    value = float(success.value) if score is None else min(score, 1.0)
    return (SourceScore("score of promptfoo", value, success.value, result.place),)


def _run(
    result: Node, answer: Node, raw: Node, tools: tuple[Table, ...], model_of: Callable[[str], str | None]
) -> ImportedRun:
    said = _message(answer.need("output"))
    tokens, latency = answer.get("tokenUsage"), result.get("latencyMs")
    if tokens is not None:
        details = tokens.get("completionDetails")
        reasoning = details.get("reasoning") if details is not None else None
        said["usage"] = {
            "prompt_tokens": tokens.table().get("prompt"),
            "completion_tokens": tokens.table().get("completion"),
            "completion_tokens_details": {"reasoning_tokens": reasoning.value if reasoning is not None else None},
        }
    if latency is not None and answer.table().get("cached") is not True:
        said["latency_ms"] = latency.value
    before: list[JsonValue] = [{"role": "user", "content": raw.value}]
    provider = result.get("provider")
    name = provider.text_of("id") or provider.text_of("label") if provider is not None else ""
    conversation = conversation_of(
        Node(
            {
                "messages": [*before, said],
                "model": model_of(name) or name,
                "tools": [{"name": str(tool["name"])} for tool in tools],
            },
            answer.place,
        )
    )
    (run,) = case_of(conversation).runs
    return run


def _message(output: Node) -> dict[str, JsonValue]:
    """Returns an output as an answer: calls as OpenAI has them, or a text in which Anthropic's and those of Responses
    have a line each."""
    if isinstance(output.value, str):
        whole = _parsed(output.value)
        lines = [_parsed(line) for line in output.value.splitlines()]
        if whole is not None and _calls(Node(whole, output.place)) is not None:
            return _message(Node(whole, output.place))
        called = [each for each in lines if isinstance(each, dict) and each.get("type") in _CALLS]
        if not called:
            return {"role": "assistant", "content": output.value}
        pairs = zip(output.value.splitlines(), lines, strict=True)
        texts = [line for line, each in pairs if not (isinstance(each, dict) and each.get("type") in _CALLS)]
        made = _calls(Node([*called], output.place))
        return {"role": "assistant", "content": "\n".join(texts).strip(), "tool_calls": made or []}
    calls = _calls(output)
    if calls is None:
        return {"role": "assistant", "content": json_text(output.value)}
    return {"role": "assistant", "content": output.text_of("content"), "tool_calls": calls}


def _parsed(text: str) -> JsonValue:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found: JsonValue = parsed_json(text)
    except ValueError:
        return None
    return found


def _calls(output: Node) -> list[JsonValue] | None:
    """Returns the calls of an output, `None` where it is none."""
    listed = output.get("tool_calls") or output
    made: list[JsonValue] = []
    for each in listed.listed():
        inner = each.get("function") or each
        arguments = inner.first("arguments", "input")
        if not isinstance(inner.value, dict) or not inner.text_of("name") or arguments is None:
            return None
        call: JsonValue = {"name": inner.text_of("name"), "arguments": arguments.value}
        made.append({"id": each.text_of("call_id", "id"), "function": call})
    return made or None
