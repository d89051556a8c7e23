"""Garbage collection is restored after all batches, however they end."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from workbench.engine import garbage
from workbench.engine.garbage import OBJECTS_BETWEEN_COLLECTIONS, garbage_collected_rarely


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = gc.get_threshold()
    monkeypatch.setattr(garbage, "_is_frozen_by_others", False)
    gc.unfreeze()
    yield
    gc.freeze()  # as after the collection of tests
    gc.set_threshold(*before)


def test_the_outermost_batch_restores_what_it_changed() -> None:
    gc.set_threshold(700, 9, 8)
    with garbage_collected_rarely():
        with pytest.raises(KeyboardInterrupt), garbage_collected_rarely():
            raise KeyboardInterrupt
        assert gc.get_threshold() == (OBJECTS_BETWEEN_COLLECTIONS, 9, 8)
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == (700, 9, 8)
    assert gc.get_freeze_count() == 0


def test_what_the_program_froze_or_switched_off_stays_so() -> None:
    gc.set_threshold(0)
    gc.freeze()
    with garbage_collected_rarely():
        assert gc.get_threshold()[0] == 0
    assert gc.get_freeze_count() > 0


def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()
    with garbage_collected_rarely():
        monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("counting visits every object"))
    with garbage_collected_rarely():
        pass
    monkeypatch.undo()
    assert gc.get_freeze_count() > 0
