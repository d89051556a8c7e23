"""What is exported and imported again is the same conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.exchange.exporters.recorded_runs import Said, events_of, run_of
from tests.sampled_rows import first_rows
from tests.strategies import is_json, json_objects
from workbench.config.secrets import Secrets
from workbench.exchange.exporters.exported import ExportedRun
from workbench.exchange.exporters.forms import FORMS, files_of, lines_of
from workbench.exchange.importers.forms import format_of, forms_that_fit
from workbench.exchange.importers.import_files import make_suite
from workbench.exchange.importers.import_files import run_of as imported_run_of
from workbench.exchange.importers.source_files import source_of
from workbench.providers.wire.tool_calls import read_arguments
from workbench.trajectory.events import Message, ToolCall, ToolDefinition

# Hypothesis draws constants of the program, such as [THINK], and importers take thoughts out of an answer.
_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="[<◁"), max_size=12)
_NAMES = st.sampled_from(["get_weather", "set_lights", "a-b.c"])
_TOOLS = [ToolDefinition(name, "d", {"type": "object"}) for name in ("get_weather", "set_lights", "a-b.c")]


@st.composite
def _runs(draw: st.DrawFn) -> tuple[str | None, list[Message], list[Said]]:
    ids = iter(f"call{number}" for number in range(100))

    def call() -> tuple[ToolCall, str | None, bool]:
        made = ToolCall(next(ids), draw(_NAMES), draw(json_objects.filter(is_json)))
        if draw(st.integers(0, 5)) == 0:
            arguments, problem = read_arguments('{"city": ')
            made = ToolCall(made.id, made.tool, arguments, '{"city": ', problem)
        return made, draw(_TEXTS | st.none()), draw(st.booleans())

    rounds: list[Said] = [
        (draw(_TEXTS), draw(_TEXTS), [call() for _ in range(draw(st.integers(1, 3)))])
        for _ in range(draw(st.integers(0, 3)))
    ]
    earlier: list[Message] = []
    if draw(st.booleans()):
        before = ToolCall("before", "get_weather", {"city": "Oslo"})
        earlier = [
            *(Message("user", "Hello"), Message("assistant", draw(_TEXTS), (before,))),
            *(Message("tool", draw(_TEXTS), call_id="before"), Message("assistant", "Done.")),
        ]
    opening = [*earlier, Message("user", f"Do {draw(_TEXTS)}")]
    return draw(st.none() | _TEXTS.filter(str.strip)), opening, [*rounds, (draw(_TEXTS) + ".", draw(_TEXTS), ())]


def told(run: ExportedRun) -> list[object]:
    """A conversation with all that is to survive."""
    return [
        (
            *(each.role, each.message.content, each.message.call_id, each.message.is_error),
            [(call.id, call.tool, call.arguments, call.raw, call.problem) for call in each.message.tool_calls],
            each.answer.reasoning if each.answer is not None else None,
        )
        for each in run.conversation
    ]


def again(form: str, text: str) -> ExportedRun:
    """The only run of an exported text, imported."""
    source = source_of(Path("runs.jsonl"), text.encode())
    (fits,) = forms_that_fit(source)
    assert fits == form
    made = make_suite(format_of(form).read(source), "runs", Path("made.toml"), Secrets())
    assert made.file.suite is not None, made.file.problems
    (case,), (imported,) = made.file.suite.cases, made.cases
    _, events, _ = imported_run_of(made.file, case, imported.runs[0], 0)
    return run_of(events)


@pytest.mark.parametrize(
    ("form", "imported_as"), first_rows([("messages", "openai"), ("otlp", "otel"), ("atif", "atif")], 1)
)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=_runs())
def test_what_is_imported_again_is_the_same_conversation(
    form: str, imported_as: str, made: tuple[str | None, list[Message], list[Said]]
) -> None:
    system, opening, rounds = made
    run = run_of(events_of(rounds, system=system, opening=opening, tools=_TOOLS))
    pieces = lines_of(form, [run]) if FORMS[form].ending else next(iter(files_of(form, [run])))[1]
    assert told(again(imported_as, "".join(pieces))) == told(run)
