"""A batch in progress belongs to one program while that program runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.entries import child
from workbench.history.claims import claim, is_claimed
from workbench.history.records import HistoryError

CLAIMING = """
from workbench.history.claims import claim
claim(file, 7)
say("claimed")
sys.stdin.readline()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


def test_nothing_is_claimed_where_nobody_ever_claimed_anything(file: Path) -> None:
    assert not is_claimed(file, 1)
    assert list(file.parent.iterdir()) == []


def test_what_is_claimed_here_cannot_be_claimed_again_until_it_is_released(file: Path) -> None:
    first = claim(file, 7)
    assert (is_claimed(file, 7), is_claimed(file, 8)) == (True, False)
    with pytest.raises(HistoryError, match="batch 7 is running in another program, or in this one"):
        claim(file, 7)
    first.release()
    first.release()
    assert not is_claimed(file, 7)
    claim(file, 7).release()


@pytest.mark.slow
def test_asking_after_another_batch_loses_no_claim(file: Path) -> None:
    first, second = claim(file, 7), claim(file, 8)
    second.release()
    assert not is_claimed(file, 9)
    with child("from workbench.history.claims import is_claimed\nsay(str(is_claimed(file, 7)))", file) as other:
        assert other.communicate(timeout=20)[0] == "True\n"
    first.release()


@pytest.mark.slow
def test_a_program_that_is_killed_claims_nothing_any_more(file: Path) -> None:
    with child(CLAIMING, file) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        assert is_claimed(file, 7)
        with pytest.raises(HistoryError, match="stop it there, or wait"):
            claim(file, 7)
        other.kill()
        other.wait(20)
        assert not is_claimed(file, 7)
    claim(file, 7).release()


def test_a_history_that_cannot_be_written_beside_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match="cannot be written"):
        claim(tmp_path / "file" / "history.sqlite3", 7)
    assert not is_claimed(tmp_path / "file" / "history.sqlite3", 7)
