"""Trajectories in short form, and a hypothesis strategy for them. Few words are used, so that two trajectories often
share some."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.trajectory.scripts import json_values
from workbench.trajectory.events import (
    FinishReason,
    JsonValue,
    ResultReceived,
    RunFinished,
    StepStarted,
    ToolCall,
    UserSaid,
)
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory


def call(tool: str, result: str | None = "ok", is_error: bool = False, **arguments: JsonValue) -> CallRecord:
    answered = ResultReceived("c", result, is_error, "default", 1.0) if result is not None else None
    return CallRecord(ToolCall("c", tool, arguments), 1, result=answered)


def asked(number: int, text: str = "", *calls: CallRecord, told: tuple[str, ...] = ()) -> Round:
    return Round(number, text=text, calls=calls, stop_reason="tool calls" if calls else "answered", added=told)


def run(*rounds: Round, reason: FinishReason | None = "answered") -> Trajectory:
    return Trajectory("run", rounds=rounds, finish=RunFinished(reason) if reason is not None else None)


texts = st.sampled_from(["", "a", "b c", "b d"])
sources = st.sampled_from(["default", "edited", "skipped"])
results = st.none() | st.builds(ResultReceived, texts, texts, st.booleans(), sources, st.floats(0, 9))
objects = st.dictionaries(st.sampled_from("xyz"), json_values, max_size=2)
calls = st.builds(
    CallRecord,
    st.builds(ToolCall, texts, st.sampled_from(["t", "u"]), objects, st.none() | texts, st.none() | texts),
    st.just(1),
    result=results,
    edited=st.none() | objects.map(lambda given: {**given, "by hand": True}),
    unedited=results,
)


def numbered(rounds: list[Round]) -> tuple[Round, ...]:
    return tuple(replace(round_, number=number) for number, round_ in enumerate(rounds, start=1))


trajectories = st.builds(
    lambda rounds, reason: run(*numbered(rounds), reason=reason),
    st.lists(
        st.builds(
            Round,
            st.just(1),
            text=texts,
            calls=st.lists(calls, max_size=2).map(tuple),
            stop_reason=st.sampled_from([None, "answered", "tool calls"]),
            step=st.none() | st.builds(StepStarted, st.just(1), user=st.none() | texts),
            added=st.lists(texts.filter(bool), max_size=1).map(tuple),
            said=st.none() | st.builds(UserSaid, st.just(1), texts, st.sampled_from(["script", "person"])),
        ),
        max_size=3,
    ),
    st.sampled_from([None, "answered", "stopped"]),
)
