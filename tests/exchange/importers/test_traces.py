"""Traces, sessions and trajectories, and the resulting cases."""

from __future__ import annotations

import json
import zipfile
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.importers.samples import (
    AGENTEVALS,
    ASKED,
    ATIF,
    CALLED,
    DIALECTS,
    INSPECT,
    OPENAI,
    OTEL,
    SESSION,
    TAU,
    TAU2,
    WEATHER_SCHEMA,
    as_json,
    as_lines,
    exported,
    session_line,
)
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import format_of
from workbench.exchange.importers.import_files import ImportedSuite, make_suite, run_of
from workbench.exchange.importers.source_files import RefusedError, source_of
from workbench.suite.model import Suite
from workbench.trajectory.events import Usage
from workbench.trajectory.trajectory import Trajectory


def made_of(form: str, name: str, content: bytes) -> tuple[Suite, ImportedSuite]:
    source = source_of(Path(name), content)
    made = make_suite(format_of(form).read(source), source.name, Path("made.toml"), Secrets())
    assert made.file.suite is not None
    return made.file.suite, made


def trajectory_of(suite: Suite, made: ImportedSuite, index: int = 0) -> Trajectory:
    (run,) = made.cases[index].runs
    return run_of(made.file, suite.cases[index], run, 0)[2].trajectory


def test_the_longest_conversation_of_a_trace_is_a_case() -> None:
    suite, made = made_of("otel", "trace.json", as_json(OTEL))
    (case,) = suite.cases
    assert (case.user, case.system) == ("Is it raining in Oslo?", "Be brief.")
    assert [tool.name for tool in suite.tools] == ["get_weather"]
    trajectory = trajectory_of(suite, made)
    (call,) = trajectory.calls
    assert call.arguments == {"city": "Oslo"}
    assert call.result is not None and call.result.content == "rain"
    assert trajectory.start is not None and trajectory.start.model == "gpt-4o"
    assert (trajectory.rounds[0].latency_ms, trajectory.rounds[0].usage) == (250.0, Usage(30, 5))
    assert made.cases[0].runs[0].started_at == "2026-11-22T20:31:49.000+00:00"


def test_a_later_span_continues_the_conversation() -> None:
    answered: list[dict[str, Any]] = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"rain": True}}]}
    ]
    last = {
        "gen_ai.input.messages": [*ASKED, *CALLED, *answered],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}],
    }
    other = {"gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "A title, please"}]}]}
    first = {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": CALLED}
    suite, made = made_of("otel", "trace.jsonl", as_lines(exported(first, last, other)))
    trajectory = trajectory_of(suite, made)
    assert trajectory.final_answer == "Yes."
    assert trajectory.calls[0].result is not None and trajectory.calls[0].result.content == '{"rain":true}'
    assert "1 span of another conversation: left out" in [note.why for note in made.cases[0].notes]


def test_a_span_of_openinference() -> None:
    span = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-4o",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Is it raining in Oslo?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "get_weather",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city": "Oslo"}',
        "llm.tools.0.tool.json_schema": OPENAI["tools"][0],
    }
    suite, made = made_of("otel", "trace.json", as_json(exported(span)))
    assert [tool.name for tool in suite.tools] == ["get_weather"]
    assert [call.arguments for call in trajectory_of(suite, made).calls] == [{"city": "Oslo"}]


def test_a_trace_without_content_says_so() -> None:
    with pytest.raises(RefusedError, match=r"trace c5ed1e6b: .*record content at the source"):
        made_of("otel", "trace.json", as_json(exported({"gen_ai.operation.name": "chat"})))


@pytest.mark.parametrize("dialect", ["openllmetry", "vercel", "logfire", "pydantic-ai"])
def test_every_dialect_says_the_same(dialect: str) -> None:
    form, name, content = DIALECTS[dialect]
    suite, made = made_of(form, name, content)
    (case,) = suite.cases
    assert (case.user, case.system) == ("Is it raining in Oslo?", "Be brief.")
    assert [(tool.name, tool.parameters) for tool in suite.tools] == [("get_weather", WEATHER_SCHEMA)]
    trajectory = trajectory_of(suite, made)
    assert trajectory.start is not None and trajectory.start.model == "gpt-4o"
    first, last = trajectory.rounds
    (call,) = first.calls
    assert (call.arguments, call.result and call.result.content) == ({"city": "Oslo"}, "rain")
    assert last.text == "Yes."
    assert [each.usage for each in (first, last)] == [Usage(60, 9), Usage(80, 2)]
    assert [each.latency_ms for each in (first, last)] == [250.0, 250.0]
    assert not [note for note in made.cases[0].notes if "left out" in note.why]


def cut(**more: object) -> dict[str, Any]:
    export = exported({"gen_ai.input.messages": ASKED, "gen_ai.output.messages": CALLED})
    export["resourceSpans"][0]["scopeSpans"][0]["spans"][0].update(more)
    return export


@pytest.mark.parametrize(
    ("export", "why"),
    [
        (cut(droppedAttributesCount=3), "was cut off: its source dropped 3 attributes"),
        (exported({"gen_ai.input.messages": json.dumps(ASKED)[:40]}), "was cut off, or is not JSON"),
        (
            exported({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi", "gen_ai.prompt.2.role": "user"}),
            "was cut off: the message number 1 is missing",
        ),
        (exported({"gen_ai.input.messages": [*CALLED, *ASKED]}), "does not begin with a message of the user"),
        (exported({"gen_ai.output.messages": CALLED}), "has no user message"),
    ],
)
def test_a_trace_that_is_not_whole_is_refused(export: dict[str, Any], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        made_of("otel", "trace.json", as_json(export))


def test_each_request_of_a_session_is_a_case() -> None:
    aside = session_line(9, "assistant", "elsewhere", isSidechain=True)
    rewound = session_line(8, "user", "no", parentUuid="u3")
    lines = [SESSION[0], aside, *SESSION[1:4], rewound, *SESSION[4:]]
    suite, made = made_of("claude-code", "s.jsonl", as_lines(*lines))
    assert [case.user for case in suite.cases] == ["Is it raining in Oslo?", "Thanks!"]
    trajectory = trajectory_of(suite, made)
    assert trajectory.final_answer == "Yes."
    assert trajectory.calls[0].result is not None and trajectory.calls[0].result.content == "rain"
    assert suite.cases[1].expect_no_calls
    assert "1 line of side chains" in made.notes[0].why
    assert made.cases[0].runs[0].model == "claude-sonnet-4-5"


def test_an_answer_in_several_lines_is_one() -> None:
    first = session_line(1, "assistant", [{"type": "text", "text": "I look."}])
    second = session_line(2, "assistant", [{"type": "tool_use", "id": "t1", "name": "get", "input": {}}])
    for line in (first, second):
        line["message"] = {**line["message"], "id": "m1"}  # type: ignore[dict-item]
    suite, made = made_of("claude-code", "s.jsonl", as_lines(SESSION[1], first, second))
    (only,) = trajectory_of(suite, made).rounds
    assert (only.text, [call.tool for call in only.calls]) == ("I look.", ["get"])


def test_the_reference_is_expected_and_the_outputs_are_a_run() -> None:
    other = {**AGENTEVALS, "outputs": [{"role": "assistant", "content": "Yes."}]}
    suite, made = made_of("agentevals", "e.jsonl", as_lines(AGENTEVALS, other))
    assert [case.expected_calls()[0].tool for case in suite.cases] == ["get_weather", "get_weather"]
    pairs = zip(suite.cases, made.cases, strict=True)
    statuses = [run_of(made.file, case, of.runs[0], 0)[2].status for case, of in pairs]
    assert statuses == ["passed", "failed"]
    assert "the reference's calls are compared as under `strict`" in made.file.text
    assert "those that the run made" not in made.file.text


def test_a_trajectory_of_atif_keeps_its_tokens_and_says_what_it_leaves_out() -> None:
    suite, made = made_of("atif", "a.jsonl", as_lines(ATIF, {**ATIF, "schema_version": "ATIF-v2.0"}))
    (case,) = suite.cases
    assert (case.user, case.system) == ("Is it raining in Oslo?", "Be brief.")
    trajectory = trajectory_of(suite, made)
    assert [each.usage for each in trajectory.rounds] == [Usage(30, 5, 20), None]
    assert (trajectory.rounds[0].reasoning, trajectory.final_answer) == ("I look.", "Yes.")
    assert trajectory.calls[0].result is not None and trajectory.calls[0].result.content == "rain"
    assert trajectory.start is not None and trajectory.start.model == "gpt-4o"
    notes = [str(note) for note in made.cases[0].notes]
    assert "line 1.steps[2].observation.results[1]: an observation that answers no call of its step: left out" in notes
    assert "line 1.steps[3]: a step of the system in the middle of the run: left out" in notes
    assert "line 1.steps[4]: no model was asked in this step, but the run includes it" in notes
    (refused,) = made.notes
    assert str(refused) == "line 2.schema_version: not imported: ATIF-v2.0 is none of ATIF-v1.0 to ATIF-v1.7"


def test_epochs_of_a_sample_of_inspect_are_runs_of_one_case() -> None:
    suite, made = made_of("inspect", "log.json", as_json(INSPECT))
    (case,) = suite.cases
    assert (suite.name, case.name, case.user, case.system) == ("weather", "oslo", "Is it raining in Oslo?", "Be brief.")
    assert [tool.name for tool in suite.tools] == ["get_weather"]
    runs = [run_of(made.file, case, run, 0)[2] for run in made.cases[0].runs]
    assert [run.status for run in runs] == ["passed", "failed"], "the second epoch asked for another city"
    trajectory = runs[0].trajectory
    assert (trajectory.rounds[0].usage, trajectory.rounds[0].latency_ms) == (Usage(30, 5, 20), 250.0)
    assert trajectory.rounds[0].reasoning == "I look."
    assert trajectory.calls[0].result is not None and trajectory.calls[0].result.content == "rain"
    notes = {note.why for note in made.cases[0].notes}
    assert "1 message of the user after it, and what followed, left out" in notes
    assert [run.metrics[0][:3] for run in runs] == [("includes of Inspect", 1.0, True)] * 2
    assert "its target is rain, which no check asks for" in notes


def test_answers_of_inspect_without_ids_are_measured_in_their_order() -> None:
    log = json.loads(json.dumps(INSPECT))
    (sample, _) = log["samples"]
    for message in sample["messages"]:
        del message["id"]
    event = sample["events"][1]
    del event["output"]["choices"][0]["message"]["id"]
    later = {**event, "output": {**event["output"], "usage": {"input_tokens": 40, "output_tokens": 1}}}
    sample["events"].append(later)
    _, made = made_of("inspect", "log.json", as_json(log))
    assert made.cases[0].runs[0].rounds[0].usage == Usage(30, 5, 20)
    del sample["events"][1]
    _, made = made_of("inspect", "log.json", as_json(log))
    assert made.cases[0].runs[0].rounds[0].usage is None, "one request of two answers: it is not plain whose"


def eval_file(log: dict[str, Any], finished: bool = True) -> bytes:
    """A log as an archive; one that is not finished has no header yet."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        head = {key: value for key, value in log.items() if key != "samples"}
        archive.writestr("header.json" if finished else "_journal/start.json", json.dumps(head))
        for sample in log["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return content.getvalue()


def test_an_archive_of_inspect_is_the_same_log() -> None:
    suite, _ = made_of("inspect", "log.eval", eval_file(INSPECT))
    assert suite == made_of("inspect", "log.json", as_json(INSPECT))[0]
    started = {key: value for key, value in INSPECT.items() if key != "status"}
    assert made_of("inspect", "log.eval", eval_file(started, finished=False))[0].cases == suite.cases
    # Method 93 is Zstandard. Its number is in the header of each part, and in the directory.
    packed = eval_file(INSPECT)
    for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        parts = packed.split(mark)
        packed = mark.join([parts[0], *(part[: at - 4] + b"\x5d\x00" + part[at - 2 :] for part in parts[1:])])
    with pytest.raises(RefusedError, match=r"inspect log convert --to json --output-dir \. log\.eval"):
        source_of(Path("log.eval"), packed)
    with pytest.raises(RefusedError, match="not a log of Inspect"):
        source_of(Path("log.eval"), packed.replace(b"header.json", b"reader.json"))
    with pytest.raises(RefusedError, match="cannot be unpacked"):
        source_of(Path("log.eval"), eval_file(INSPECT)[:99])


def _tau2(*, scenario: bool) -> Any:
    value: Any = deepcopy(TAU2)
    if scenario:
        instructions = {"reason_for_call": "Ask.", "known_info": "You are in Oslo.", "unknown_info": None}
        value["tasks"][0]["user_scenario"] = {"persona": None, "instructions": instructions}
    return value


def test_a_task_of_tau_is_a_conversation_with_a_played_user() -> None:
    suite, made = made_of("tau", "airline.json", as_json([TAU]))
    (case,) = suite.cases
    user = case.conversation
    assert user is not None and user.stop is not None
    assert (case.name, user.goal, user.stop.called) == ("Task 7", "Ask.", ("transfer_to_human_agents",))
    assert (suite.system, case.system, case.messages) == ("Be brief.", None, ())
    trajectory = trajectory_of(suite, made)
    said = [turn.said.text for turn in trajectory.user_turns if turn.said is not None]
    assert said == ["Hello!", "Is it raining in Oslo?"]
    assert [round_.turn for round_ in trajectory.rounds] == [1, 2, 2]
    assert [call.call.arguments for call in trajectory.calls] == [{"city": "Oslo"}]
    assert trajectory.finish_reason == "user done"
    named = "its task names 1 action, 0 of which change the database: exactly these changes are expected"
    assert named in {note.why for note in made.cases[0].notes}


def test_a_task_of_tau2_is_a_conversation_after_the_greeting() -> None:
    suite, made = made_of("tau", "airline.json", as_json(_tau2(scenario=True)))
    (case,) = suite.cases
    assert case.conversation is not None
    assert (case.name, case.conversation.goal) == ("Task 7", "Ask.\n\nYou are in Oslo.")
    assert [message.role for message in case.messages] == ["assistant"]
    trajectory = trajectory_of(suite, made)
    assert (trajectory.rounds[0].usage, trajectory.rounds[0].latency_ms) == (Usage(30, 5), 500.0)
    assert trajectory.calls[0].result is not None and trajectory.calls[0].result.is_error
    # The recording ends with an unanswered message of the user.
    assert trajectory.finish_reason == "rounds exhausted"


def test_turns_of_tau_are_cases_where_nothing_says_what_the_user_wants() -> None:
    suite, made = made_of("tau", "airline.json", as_json(_tau2(scenario=False)))
    (case,) = suite.cases
    assert (case.name, case.user) == ("Task 7, turn 1", "Is it raining in Oslo?")
    assert [message.role for message in case.messages] == ["assistant"]
    assert "the simulated user has its own tools in this domain: their calls are left out" in {
        note.why for note in made.cases[0].notes
    }
    with pytest.raises(RefusedError, match="holds tasks, which need a simulated user"):
        made_of("tau", "tasks.json", as_json([{"user_scenario": {"a": 1}, "evaluation_criteria": {"b": 1}}]))
