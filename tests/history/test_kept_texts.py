"""All texts of a batch are read back unchanged."""

from __future__ import annotations

import math
import os
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.history.entries import FILE, batch_of, done
from tests.trajectory.scripts import events_of
from workbench.grading.grade import Grade
from workbench.grading.result_json import outcome_from_json
from workbench.grading.run_summary import summary_of
from workbench.grading.status import Status
from workbench.history.database import open_for_writing, transaction
from workbench.history.edits import add_grading, name_batch
from workbench.history.history import History
from workbench.history.packing import RunPacker
from workbench.history.records import NewRun
from workbench.history.rows import SharedTexts, begin_batch, write_run
from workbench.suite.settings import CriticsOptions, Grading
from workbench.trajectory.events import RunStarted, ToolDefinition
from workbench.trajectory.fold import fold

any_text = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs"]),
        st.sampled_from("\0\x1b\n\r'\"\\;😀é\u2028\ufffe"),
    ),
    max_size=12,
)
"""Lone surrogates too, which models can write and names of files can hold."""


any_score = st.one_of(st.floats(0, 1), st.floats(-1e300, 1), st.just(-math.inf))
"""With `arcade_compatible` they go down to minus infinity."""


def nothing_said(said: str) -> None:
    raise AssertionError(said)


@settings(max_examples=examples(150))
@given(
    case=st.tuples(any_text, any_text),
    model=any_text,
    folder=st.binary(max_size=8).map(lambda name: os.fsdecode(name.translate(None, b"/\0"))),
    words=st.tuples(any_text, any_text),
    setting=any_text,
    name=any_text.map(lambda text: f"n{text}n").filter(str.isprintable),
    score=any_score,
)
def test_texts_and_numbers_come_out_as_they_went_in(
    case: tuple[str, str],
    model: str,
    folder: str,
    words: tuple[str, str],
    setting: str,
    name: str,
    score: float,
) -> None:
    case_id, case_name = case
    answer, why = words
    suite = replace(FILE, path=Path(f"/project/{folder}x.toml"))
    planned = NewRun("run-0", suite, case_id, case_name, model, 0, True)
    batch = replace(
        batch_of(1), settings={setting: [setting, 1.5]}, runs=(planned,), projects={suite.path: Path("/project")}
    )
    started, *others = events_of([(answer, 0)], run_id="run-0")
    assert isinstance(started.payload, RunStarted)
    offered = ToolDefinition(name, why, {"properties": {answer: {"description": why}}})
    trajectory_events = (replace(started, payload=replace(started.payload, tools=(offered,))), *others)
    run = done(0)
    result = replace(
        run.result,
        suite=str(suite.path),
        case_id=case_id,
        case_name=case_name,
        model=model,
        status=Status.FAILED,
        trajectory=fold(trajectory_events),
        grades=(Grade("critics", score, Status.FAILED, why),),
        grading=Grading(by="critics", critics=CriticsOptions(arcade_compatible=True)),
    )
    packer = RunPacker()
    packer.packed(done(1))
    packed = packer.packed(replace(run, result=result, events=trajectory_events))
    assert packed is not None and packed.tools is not None and packed.sample is not None
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "history.sqlite3"
        with closing(open_for_writing(file, nothing_said)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            with transaction(connection):
                write_run(connection, begin_batch(connection, file, batch), 0, packed, SharedTexts(connection))
        name_batch(file, 1, name, nothing_said)
        graded = (1, summary_of(result), result)
        add_grading(file, 1, "2030", "1", [graded], nothing_said)
        with History(file) as history:
            kept = history.batch(name)
            (part,) = kept.parts
            (found,) = history.runs(1)
            assert history.runs_of_case(part.suite.key, case_id, 5, nothing_said) == [found]
            recording = history.recording(found)
            assert (kept.settings, kept.name, part.model) == (batch.settings, name, model)
            assert part.suite.file == suite.path
            wanted = summary_of(result, suite=part.suite.key, began_ms=run.began_ms, ended_ms=run.ended_ms)
            assert found.figures == wanted
            (again,) = history.runs(1, *history.gradings(1))
            assert again.figures == wanted
            assert (recording.events, recording.trajectory) == (trajectory_events, result.trajectory)
            assert recording.result is not None
            assert outcome_from_json(recording.result).grades == result.grades
            assert history.suite_text(part.suite) == suite.text


def test_a_count_that_no_provider_can_mean_does_not_cost_the_run(tmp_path: Path) -> None:
    run = done(0)
    usage = replace(run.result.trajectory.rounds[0].usage, input_tokens=1 << 80)  # type: ignore[type-var]
    rounds = (replace(run.result.trajectory.rounds[0], usage=usage), *run.result.trajectory.rounds[1:])
    huge = replace(run, result=replace(run.result, trajectory=replace(run.result.trajectory, rounds=rounds)))
    packed = RunPacker().packed(huge)
    assert packed is not None
    with closing(open_for_writing(tmp_path / "h.sqlite3", nothing_said)) as connection, transaction(connection):
        batch = begin_batch(connection, tmp_path / "h.sqlite3", batch_of(1))
        write_run(connection, batch, 0, packed, SharedTexts(connection))
        (found,) = connection.execute("SELECT input_tokens FROM runs").fetchone()
    assert found == (1 << 63) - 1


def test_equal_tools_of_two_runs_are_packed_once_and_others_by_themselves() -> None:
    packer, shared = RunPacker(), []
    for number, text in enumerate(("the weather", "the weather", "the weather, redacted", "the weather")):
        started, *others = events_of([("Done.", 0)], run_id=f"run-{number}")
        assert isinstance(started.payload, RunStarted)
        offered = ToolDefinition("get_weather", text, {"properties": {"city": {"description": text}}})
        first = replace(started, payload=replace(started.payload, tools=(offered,)))
        packed = packer.packed(replace(done(number), events=(first, *others)))
        assert packed is not None and packed.tools is not None
        shared.append(packed.tools)
    assert shared[0] is shared[1]
    assert shared[0] == shared[3] != shared[2]


def test_half_of_a_surrogate_pair_is_stored_escaped() -> None:
    packed = RunPacker().packed(replace(done(0), events=tuple(events_of([("half: \ud83d", 0)], run_id="run-0"))))
    assert packed is not None
    assert r"half: \ud83d" in packed.unpacked_texts()[0]
