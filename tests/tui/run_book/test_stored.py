"""Stored runs as records show the same as when they were made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.history.batches import run_kept
from workbench.history.history import History
from workbench.trajectory.recording import Recording, RecordingError
from workbench.tui.run_book.stored_runs import record_of


def kept(folder: Path, number: int) -> Recording:
    """Return a run of a stored batch."""
    run_kept(folder, folder / "history.db")
    with History(folder / "history.db") as history:
        return history.recording(history.runs(1)[number])


def test_a_run_of_the_history_is_a_run_that_is_over(tmp_path: Path) -> None:
    record = record_of(kept(tmp_path, 1))
    assert (record.case_name, record.model, record.stage, record.recorded) == ("Nowhere", "offline", "done", True)
    assert record.figures is not None
    assert record.figures.status == "failed"
    assert record.view.graded
    assert len(record.trajectory.calls) == 1


def test_saved_again_it_names_the_suite_that_it_was_made_from(tmp_path: Path) -> None:
    recording = kept(tmp_path, 0)
    planned, result = record_of(recording).plan_to_save
    assert planned.file.hash == recording.header.suite.hash
    assert result is not None


def test_a_recording_without_its_case_says_so(tmp_path: Path) -> None:
    recording = kept(tmp_path, 0)
    other = replace(recording, header=replace(recording.header, case="gone"))
    with pytest.raises(RecordingError, match="its suite has no case 'gone'"):
        record_of(other)
