"""Unsaved text survives any end of the program, until it is saved or discarded."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.suite.drafts import DraftError, Drafts, RecoveredDraft
from workbench.suite.files import FileState, save, state_of

BASE = 'format = 1\nname = "Base"\n'
TYPED = 'format = 1\nname = "Bäse 🎬"\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "suites" / "s.toml"
    file.parent.mkdir()
    save(file, BASE, None)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "drafts"


@pytest.fixture
def drafts(folder: Path) -> Iterator[Drafts]:
    kept = Drafts(folder, sync_interval_s=0)
    yield kept
    kept.close()


def left(folder: Path, root: Path) -> tuple[RecoveredDraft, ...]:
    """Return the drafts that the next program finds."""
    after = Drafts(folder)
    try:
        return after.recoverable([root]).drafts
    finally:
        after.close()


def files(folder: Path) -> list[str]:
    return [file.name for file in sorted(folder.iterdir())]


def test_what_was_kept_is_found_by_the_next_program(drafts: Drafts, folder: Path, suite: Path) -> None:
    state = state_of(suite)
    drafts.keep(suite, BASE, state, TYPED)
    drafts.keep(suite, BASE, state, TYPED + "# more\n")
    drafts.close()
    (found,) = left(folder, suite.parent)
    assert (found.path, found.base_text, found.base_state, found.text) == (suite, BASE, state, TYPED + "# more\n")
    assert found.changed_at == found.journal.stat().st_mtime
    assert found.journal.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_what_was_saved_or_taken_back_is_not_found(drafts: Drafts, folder: Path, suite: Path) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    drafts.forget(suite)
    drafts.forget(suite)
    assert files(folder) == []


def test_what_a_living_program_types_is_not_offered_to_another(drafts: Drafts, folder: Path, suite: Path) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    assert left(folder, suite) == ()
    drafts.close()
    assert len(left(folder, suite)) == 1


def test_what_one_program_offers_another_does_not_until_it_is_put_off(folder: Path, suite: Path) -> None:
    first, second = Drafts(folder), Drafts(folder)
    first.keep(suite, BASE, state_of(suite), TYPED)
    first.close()
    first = Drafts(folder)
    assert len(first.recoverable([suite]).drafts) == 1
    assert second.recoverable([suite]).drafts == ()
    first.close()
    assert len(second.recoverable([suite]).drafts) == 1
    second.close()


def test_drafts_of_other_folders_are_left_alone(drafts: Drafts, folder: Path, suite: Path, tmp_path: Path) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    drafts.close()
    (tmp_path / "else").mkdir()
    assert left(folder, tmp_path / "else") == ()
    assert left(folder, suite.parent / "other.toml") == ()
    assert len(left(folder, tmp_path)) == 1


def test_a_draft_is_found_by_every_way_to_its_folder(drafts: Drafts, folder: Path, suite: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(suite.parent)
    drafts.keep(link / "s.toml", BASE, state_of(suite), TYPED)
    drafts.close()
    for root in (link, suite.parent, tmp_path):
        assert len(left(folder, root)) == 1


def test_what_is_typed_is_kept_when_the_current_folder_is_gone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    drafts = Drafts(folder)
    here.rmdir()
    drafts.keep(Path("s.toml"), BASE, None, TYPED)
    drafts.close()
    (found,) = left(folder, here)
    assert (found.path, found.text) == (here / "s.toml", TYPED)


def test_what_is_typed_is_kept_when_links_lead_to_each_other(drafts: Drafts, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    drafts.keep(tmp_path / "loop" / "s.toml", BASE, None, TYPED)
    assert len(files(folder)) == 1
    drafts.forget(tmp_path / "loop" / "s.toml")
    assert files(folder) == []


def test_a_draft_of_a_suite_that_is_gone_or_never_was_is_found(drafts: Drafts, folder: Path, suite: Path) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    drafts.keep(suite.with_name("new.toml"), "", None, TYPED)
    drafts.close()
    suite.unlink()
    found = {draft.path.name: draft.base_state for draft in left(folder, suite.parent)}
    assert found["new.toml"] is None
    assert found["s.toml"] is not None


def test_a_draft_that_was_saved_all_the_same_is_cleared_away(drafts: Drafts, folder: Path, suite: Path) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    drafts.close()
    save(suite, TYPED, state_of(suite))
    assert left(folder, suite.parent) == ()
    assert files(folder) == []


def test_a_draft_that_is_taken_over_is_continued_in_its_journal(folder: Path, suite: Path, drafts: Drafts) -> None:
    state = state_of(suite)
    drafts.keep(suite, BASE, state, TYPED)
    drafts.close()
    after = Drafts(folder)
    (found,) = after.recoverable([suite]).drafts
    after.adopt(found)
    after.keep(suite, BASE, state, TYPED + "# and on\n")
    after.close()
    assert len(files(folder)) == 1
    (again,) = left(folder, suite)
    assert again.text == TYPED + "# and on\n"


def test_a_draft_that_is_thrown_away_is_gone(folder: Path, suite: Path, drafts: Drafts) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    drafts.close()
    after = Drafts(folder)
    (found,) = after.recoverable([suite]).drafts
    after.discard(found)
    after.close()
    assert files(folder) == []


def test_another_base_begins_another_journal(drafts: Drafts, folder: Path, suite: Path) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    save(suite, "# theirs\n", state_of(suite))
    drafts.keep(suite, "# theirs\n", state_of(suite), TYPED)
    drafts.close()
    (found,) = left(folder, suite)
    assert (found.base_text, found.text) == ("# theirs\n", TYPED)
    assert len(files(folder)) == 1


@given(base=st.text(), texts=st.lists(st.text(alphabet="ab\n🎬\r\x00 é", max_size=12), min_size=1))
def test_any_sequence_of_texts_is_replayed(
    tmp_path_factory: pytest.TempPathFactory, base: str, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("drafts")
    drafts, root = Drafts(folder), folder / "suites"
    for text in texts:
        drafts.keep(root / "s.toml", base, FileState("0" * 64), text)
    drafts.close()
    (found,) = left(folder, root)
    assert (found.base_text, found.text) == (base, texts[-1])


@given(cut=st.integers(min_value=1))
def test_a_torn_end_costs_only_what_was_written_last(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("drafts")
    suite = folder / "suites" / "s.toml"
    drafts = Drafts(folder)
    drafts.keep(suite, BASE, None, TYPED)
    (journal,) = folder.glob("*.draft")
    whole = journal.stat().st_size
    drafts.keep(suite, BASE, None, TYPED + "# the last\n")
    drafts.close()
    size = journal.stat().st_size
    os.truncate(journal, size - 1 - (cut - 1) % (size - whole))
    after = Drafts(folder)
    (found,) = after.recoverable([suite]).drafts
    assert found.text == TYPED
    after.adopt(found)
    after.keep(suite, BASE, None, TYPED + "# anew\n")
    after.close()
    (found,) = left(folder, suite)
    assert found.text == TYPED + "# anew\n"


@pytest.mark.parametrize(
    "damage",
    [b"nonsense\n", b'{"at":900,"cut":0,"put":"x"}\n', b"\0\0\0\0\n", b'{"at":-1,"cut":0,"put":""}\n', b"[]\n"],
)
def test_a_damaged_journal_is_set_aside_and_kept(drafts: Drafts, folder: Path, suite: Path, damage: bytes) -> None:
    drafts.keep(suite, BASE, state_of(suite), TYPED)
    drafts.close()
    (journal,) = folder.iterdir()
    content = journal.read_bytes() + damage
    journal.write_bytes(content)
    after = Drafts(folder)
    found = after.recoverable([suite])
    assert found.drafts == ()
    (aside,) = found.damaged
    assert aside.read_bytes() == content
    assert after.recoverable([suite]) == type(found)()
    after.close()
    assert files(folder) == [aside.name]


def test_a_journal_of_a_later_version_is_left_alone(drafts: Drafts, folder: Path, suite: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "s.draft").write_text('{"draft":2,"text":["?"]}\n')
    (folder / "t.draft").write_text('{"draft":1,"pa')
    assert left(folder, suite) == ()
    assert files(folder) == ["s.draft", "t.draft"]


def test_a_key_in_a_large_suite_writes_little(drafts: Drafts, folder: Path, suite: Path) -> None:
    base = "# a line of some suite\n" * 50_000
    drafts.keep(suite, base, None, base + "x")
    (journal,) = folder.iterdir()
    size = journal.stat().st_size
    half = len(base) // 2
    for typed in ("y", "yz", "y"):
        drafts.keep(suite, base, None, base[:half] + typed + base[half:] + "x")
    assert journal.stat().st_size - size < 200


def test_what_was_written_goes_to_the_disk_soon_and_at_the_end(
    folder: Path, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = threading.Semaphore(0)
    really = os.fsync

    def flush(descriptor: int) -> None:
        really(descriptor)
        flushed.release()

    monkeypatch.setattr(os, "fsync", flush)
    drafts = Drafts(folder, sync_interval_s=3600)
    drafts.keep(suite, BASE, None, TYPED)
    assert flushed.acquire(timeout=20), "the file"
    assert flushed.acquire(timeout=20), "its folder"
    drafts.keep(suite, BASE, None, TYPED + "#")
    drafts.keep(suite, BASE, None, TYPED + "##")
    drafts.close()
    assert flushed.acquire(blocking=False)


def failing(number: int) -> Callable[..., int]:
    def fails(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return fails


@pytest.mark.parametrize(
    ("call", "number", "said"),
    [
        ("write", errno.ENOSPC, "the disk is full; make room"),
        ("open", errno.EACCES, "drafts is not writable; make it writable"),
        ("write", errno.EIO, "Input/output error"),
    ],
)
def test_what_cannot_be_kept_is_said_and_kept_with_the_next_change(
    drafts: Drafts, folder: Path, suite: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, said: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(number))
        with pytest.raises(DraftError, match=said):
            drafts.keep(suite, BASE, None, TYPED)
    assert files(folder) == []
    drafts.keep(suite, BASE, None, TYPED + "#")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing(errno.ENOSPC))
        with pytest.raises(DraftError):
            drafts.keep(suite, BASE, None, TYPED + "##")
    drafts.keep(suite, BASE, None, TYPED + "###")
    drafts.close()
    (found,) = left(folder, suite)
    assert found.text == TYPED + "###"


def test_a_line_that_went_only_in_part_onto_the_disk_is_taken_back(
    drafts: Drafts, folder: Path, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.write
    drafts.keep(suite, BASE, None, TYPED)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, content: really(descriptor, content[:9]))
        with pytest.raises(DraftError, match="the disk is full"):
            drafts.keep(suite, BASE, None, TYPED + "#")
    drafts.keep(suite, BASE, None, TYPED + "##")
    drafts.close()
    (found,) = left(folder, suite)
    assert found.text == TYPED + "##"


def test_a_flush_that_fails_is_said_with_the_next_change(
    drafts: Drafts, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def fails(descriptor: int) -> None:
        tried.set()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    drafts.keep(suite, BASE, None, TYPED)
    assert tried.wait(20)
    drafts.close()
    with pytest.raises(DraftError, match="Input/output error"):
        drafts.keep(suite, BASE, None, TYPED + "#")


def test_too_many_open_files_are_said_and_flushed_once_there_are_fewer(
    drafts: Drafts, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, flushed = threading.Event(), threading.Event()
    really = os.fsync

    def fails(descriptor: int) -> int:
        tried.set()
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def flush(descriptor: int) -> None:
        really(descriptor)
        flushed.set()

    monkeypatch.setattr(os, "fsync", flush)
    with monkeypatch.context() as patch:
        patch.setattr(os, "dup", fails)
        drafts.keep(suite, BASE, None, TYPED)
        assert tried.wait(20)
        assert not flushed.is_set()
    assert flushed.wait(20)
    with pytest.raises(DraftError, match="Too many open files"):
        drafts.keep(suite, BASE, None, TYPED + "#")


TYPIST = """
import sys
from pathlib import Path
from workbench.suite.drafts import Drafts
drafts = Drafts(Path(sys.argv[1]))
text = "a" * 200_000
for number in range(1_000_000):
    drafts.keep(Path(sys.argv[2]), text, None, f"{text} {number}")
    print(number, flush=True)
"""


def test_everything_typed_is_there_after_a_kill(folder: Path, suite: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TYPIST, str(folder), str(suite)], stdout=subprocess.PIPE, text=True
    ) as typist:
        assert typist.stdout is not None
        for line in typist.stdout:
            if line == "200\n":
                break
        typist.send_signal(signal.SIGKILL)
        said = typist.stdout.read().split()
    (found,) = left(folder, suite)
    typed = int(found.text.split()[1])
    assert typed >= int(said[-1] if said else 200)
