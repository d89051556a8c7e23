"""Importing from Python: the written files, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workbench
from tests.exchange.importers.samples import INSPECT, OPENAI


def test_an_imported_file_is_saved_with_its_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted-4711-key")
    log = json.dumps(INSPECT).replace("Yes.", "Yes, planted-4711-key.")
    (folder / "log.json").write_text(log, encoding="utf-8")
    imported = workbench.import_file("log.json")
    assert imported.form == "inspect" and [run.status for run in imported.results] == ["passed", "failed"]
    assert not (folder / "log.toml").exists() and "  ✓ 1 tool" in imported.report
    suite = imported.save("oslo.toml", "runs")
    assert [case.id for case in suite.cases] == ["oslo"] and suite.path.read_text(encoding="utf-8") == imported.suite
    assert len([*(folder / "runs").glob("*.run.jsonl")]) == 2
    kept = [*(folder / "runs").iterdir(), folder / "oslo.toml"]
    assert not [file for file in kept if "planted-4711-key" in file.read_text(encoding="utf-8")]
    with pytest.raises(workbench.UsageError, match=r"oslo\.toml exists"):
        imported.save("oslo.toml")
    assert imported.save("oslo.toml", force=True).cases


def test_what_cannot_be_imported_is_refused(folder: Path) -> None:
    (folder / "chat.json").write_text(json.dumps(OPENAI), encoding="utf-8")
    (folder / "evals.py").write_text("raise SystemExit(1)", encoding="utf-8")
    for file, form, fields, says in (
        ("nothing.json", None, None, "cannot be read"),
        ("chat.json", "atif", None, "schema_version"),
        ("chat.json", "parquet", None, "'parquet' is not one of the forms openai"),
        ("chat.json", None, {"query": "x"}, "'query', which is not one of user"),
        ("evals.py", None, None, "runs only after you trust it"),
    ):
        with pytest.raises(workbench.UsageError, match=says):
            workbench.import_file(file, form, fields=fields)
