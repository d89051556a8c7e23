"""The log is one file, created when needed, and nothing is ever printed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.config.logs import log_to
from workbench.config.secrets import Secrets


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before, raising = list(root.handlers), logging.raiseExceptions
    yield
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
        handler.close()
    logging.raiseExceptions = raising


def test_warnings_of_any_part_go_to_the_file(tmp_path: Path) -> None:
    file = log_to(tmp_path / "deep" / "log")
    assert not file.exists()
    # Not into pytest's reports: half a character there would end a worker.
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not type(handler).__module__.startswith("_pytest")]
    logging.getLogger("some.library").warning("odd answer \udcff")
    logging.getLogger("some.library").info("chatter")
    assert "WARNING some.library: odd answer" in file.read_text(encoding="utf-8")
    assert "chatter" not in file.read_text(encoding="utf-8")


def test_the_log_holds_no_secret_not_even_in_a_traceback(tmp_path: Path) -> None:
    secrets = Secrets()
    secrets.add("A_KEY", "planted-4711")
    file = log_to(tmp_path, secrets)
    secrets.add("LATER_KEY", "planted-0815")
    try:
        raise ValueError("planted-4711 and planted-0815")
    except ValueError:
        logging.getLogger("x").exception("broke on planted-4711")
    log = file.read_text(encoding="utf-8")
    assert "planted" not in log
    assert "broke on $A_KEY" in log
    assert "ValueError: $A_KEY and $LATER_KEY" in log


def test_a_second_call_replaces_the_first(tmp_path: Path) -> None:
    first = log_to(tmp_path / "first")
    second = log_to(tmp_path / "second")
    logging.getLogger("x").error("once")
    assert not first.exists()
    assert second.read_text(encoding="utf-8").count("once") == 1


def test_a_file_that_cannot_be_opened_harms_nobody_who_logs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "workbench.log").mkdir()
    log_to(tmp_path)
    logging.getLogger("x").error("lost")
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_cannot_be_made_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    log_to(tmp_path / "file" / "log")
    logging.getLogger("x").error("lost")
    assert capfd.readouterr() == ("", "")
