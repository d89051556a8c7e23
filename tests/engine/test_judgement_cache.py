"""Judgements are cached between runs, and damage to the cache file is harmless."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from workbench.config.models import ModelSpec
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.engine.judges import JudgementCache

SPEC = ModelSpec("mine", "openai", "m", "http://localhost:1/v1")


def test_judgements_are_remembered_by_what_is_asked_not_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "state" / "judgements.jsonl"
    JudgementCache(file, NO_SECRETS).store(SPEC, "polite", '"hi"', True, "It greets.")
    reading = JudgementCache(file, NO_SECRETS)
    renamed = ModelSpec("yours", "openai", "m", "http://localhost:1/v1")
    assert reading.find(renamed, "polite", '"hi"') == (True, "It greets.")
    assert reading.find(SPEC, "rude", '"hi"') is None
    JudgementCache(file, NO_SECRETS).store(SPEC, "rude", '"hi"', False, "No.")  # another program, meanwhile
    assert reading.find(SPEC, "rude", '"hi"') == (False, "No.")
    assert JudgementCache(file, NO_SECRETS, ignore_existing=True).find(SPEC, "rude", '"hi"') is None
    assert file.stat().st_mode & 0o077 == 0


def test_a_number_on_a_scale_is_no_judgement_on_another_one_or_on_none(tmp_path: Path) -> None:
    file = tmp_path / "judgements.jsonl"
    JudgementCache(file, NO_SECRETS).store(SPEC, "polite", '"hi"', 4, "Friendly.", (1, 5))
    reading = JudgementCache(file, NO_SECRETS)
    assert reading.find(SPEC, "polite", '"hi"', (1.0, 5.0)) == (4, "Friendly.")
    assert reading.find(SPEC, "polite", '"hi"', (1, 10)) is None
    assert reading.find(SPEC, "polite", '"hi"') is None
    assert '"holds"' not in file.read_text(encoding="utf-8")


def test_lines_that_cannot_be_read_are_passed_over_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "judgements.jsonl"
    file.write_bytes(b'nonsense\n{"judge": 3}\n\xff\n{"half a li')
    cache = JudgementCache(file, NO_SECRETS)
    with caplog.at_level(logging.WARNING):
        assert cache.find(SPEC, "polite", '"hi"') is None
    assert "3 lines are not judgements" in caplog.text
    file.write_bytes(b"")
    cache.store(SPEC, "polite", '"hi"', True, "It greets.")
    assert JudgementCache(file, NO_SECRETS).find(SPEC, "polite", '"hi"') == (True, "It greets.")


def test_a_file_that_was_deleted_and_has_grown_longer_is_read_from_its_beginning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "judgements.jsonl"
    writing, reading = JudgementCache(file, NO_SECRETS), JudgementCache(file, NO_SECRETS)
    writing.store(SPEC, "polite", '"hi"', True, "It greets.")
    assert reading.find(SPEC, "polite", '"hi"') is not None
    file.unlink()
    writing.store(SPEC, "polite", f'"{"long " * 50}"', False, "No.")
    assert reading.find(SPEC, "polite", f'"{"long " * 50}"') == (False, "No.")
    assert "judgement" not in caplog.text


def test_a_line_that_was_written_in_part_does_not_swallow_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "judgements.jsonl"
    file.write_bytes(b'{"half a li')
    JudgementCache(file, NO_SECRETS).store(SPEC, "polite", '"hi"', True, "It greets.")
    assert JudgementCache(file, NO_SECRETS).find(SPEC, "polite", '"hi"') == (True, "It greets.")
    assert "1 line is not a judgement and was passed over" in caplog.text


def test_a_place_that_cannot_be_written_costs_only_the_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = JudgementCache(tmp_path / "file" / "judgements.jsonl", NO_SECRETS)
    cache.store(SPEC, "polite", '"hi"', True, "It greets.")
    assert cache.find(SPEC, "polite", '"hi"') == (True, "It greets.")


def test_a_judgement_of_a_secret_is_remembered_and_not_written(tmp_path: Path) -> None:
    secrets = Secrets()
    secrets.add("API_KEY", "sk-very-secret-1")
    file = tmp_path / "judgements.jsonl"
    cache = JudgementCache(file, secrets)
    cache.store(SPEC, "holds a key", '"sk-very-secret-1"', True, "sk-very-secret-1 is there.")
    assert cache.find(SPEC, "holds a key", '"sk-very-secret-1"') == (True, "sk-very-secret-1 is there.")
    assert not file.exists()
    cache.store(SPEC, "polite", '"hi"', True, "No sk-very-secret-1 is there.")
    assert JudgementCache(file, secrets).find(SPEC, "polite", '"hi"') == (True, "No $API_KEY is there.")
