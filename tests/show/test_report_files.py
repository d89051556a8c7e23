"""A report's file is replaced as a whole, or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.results import result
from tests.show.hostile_texts import report_on
from workbench.grading.status import Status
from workbench.show.forms import FORMS, form_of_file, forms_of
from workbench.show.report_files import why_not_writable, write_report


def breaking() -> Iterator[str]:
    yield "half of "
    raise OSError(28, "No space left on device")


def test_what_cannot_be_written_to_its_end_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text("old")
    with pytest.raises(OSError, match="No space"):
        write_report(file, breaking())
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


def test_a_link_stays_one_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "real.txt"
    file.write_text("old")
    file.chmod(0o640)
    link = tmp_path / "link.txt"
    link.symlink_to(file)
    write_report(link, ["new", " text\n"])
    assert link.is_symlink() and file.read_text() == "new text\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_report(pipe, ["through"])
    assert os.read(reading, 100) == b"through"
    os.close(reading)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_why_nothing_can_be_written(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path / "new.txt") is None
    assert why_not_writable(tmp_path) == "the path is a folder"
    assert why_not_writable(tmp_path / "a" / "new.txt") == f"there is no folder {tmp_path / 'a'}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", forms_of("run", for_report=True))
def test_python_writes_each_form_by_its_ending(tmp_path: Path, form: str) -> None:
    report = report_on(result(Status.PASSED, 1.0), result(Status.FAILED, 0.5, case="other"))
    endings = next(each.endings for each in FORMS if each.name == form)
    for ending in endings:
        file = tmp_path / f"report{ending.upper()}"
        assert form_of_file(file, "run", for_report=True) == form
        report.write(file)
        assert file.read_text(encoding="utf-8") == "".join(report.pieces(form)).replace("\r\n", "\n")
    named = tmp_path / "plain"
    report.write(str(named), form=form)
    assert named.stat().st_size


def test_python_is_told_which_forms_there_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="its ending is not the form of a report; give form= one of text, json, "):
        report_on(result(Status.PASSED, 1.0)).write(tmp_path / "report.doc")
    assert list(tmp_path.iterdir()) == []
