"""Rows of BFCL, and the checks made from their accepted values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.importers.samples import BFCL, as_lines
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import format_of
from workbench.exchange.importers.import_files import ImportedSuite, ImportOptions, import_file, make_suite
from workbench.exchange.importers.source_files import RefusedError, source_of


def made_of(*rows: object, name: str = "rows.jsonl") -> ImportedSuite:
    source = source_of(Path(name), as_lines(*rows))
    return make_suite(format_of("bfcl").read(source), source.name, Path("made.toml"), Secrets())


def test_accepted_values_are_alternatives() -> None:
    made = made_of(BFCL)
    assert made.file.suite is not None
    (case,) = made.file.suite.cases
    (call,) = case.expected_calls()
    assert (case.id, call.tool, call.only_args, case.extra_calls) == ("simple_0", "weather_get", True, "forbid")
    assert case.limits.max_rounds == 1
    text = " ".join(made.file.text.split())
    assert 'any_of = [{ equals_text = "Oslo" }, { equals_text = "Oslo, Norway" }]' in text
    assert "days = { equals = 1, cast = false, optional = true }" in text
    assert "hour = { any_of = [{ equals = 8, cast = false }, { equals = 9, cast = false }] }" in text
    assert 'day = { any_of = [{ equals_text = "May 1" }, { equals_text = "" }], optional = true }' in text
    assert made.file.suite.tools[0].parameters["type"] == "object"


def test_answers_may_stand_in_a_file_beside_the_rows(tmp_path: Path) -> None:
    row = {key: value for key, value in BFCL.items() if key != "ground_truth"}
    (tmp_path / "rows.jsonl").write_bytes(as_lines(row))
    options = ImportOptions(tmp_path / "rows.jsonl", tmp_path / "made.toml")
    with pytest.raises(RefusedError, match="has no accepted answers: put BFCL's file of accepted answers"):
        import_file(options, Secrets())
    (tmp_path / "possible_answer").mkdir()
    (tmp_path / "possible_answer" / "rows.jsonl").write_bytes(as_lines(BFCL))
    assert import_file(options, Secrets()).form == "bfcl"


def test_rows_without_calls_and_of_several_turns() -> None:
    row = {key: value for key, value in BFCL.items() if key != "ground_truth"}
    irrelevant = made_of(row, name="live_irrelevance.jsonl").file.suite
    assert irrelevant is not None and irrelevant.cases[0].expect_no_calls
    relevant = made_of(row, name="live_relevance.jsonl").file.suite
    assert relevant is not None and relevant.cases[0].expected_calls()[0].is_any
    with pytest.raises(RefusedError, match="several turns"):
        made_of({**BFCL, "question": [[], []]})


def test_a_table_with_many_accepted_values_is_one_check_and_a_list_of_tables_keeps_its_order() -> None:
    many = {name: [*range(9), ""] for name in "abcdef"}
    rows = [[{"name": ["Ann", None], "tags": [["x"]]}, {"name": ["Bo"]}]]
    made = made_of({**BFCL, "ground_truth": [{"weather.get": {"at": [many], "rows": rows}}]})
    text = " ".join(made.file.text.split())
    assert text.count("{ equals = 8, cast = false }") == 6
    assert 'name = { any_of = [{ equals_text = "Ann" }, { equals_null = true }] }' in text
    assert 'tags = { equals = ["x"], cast = false }' in text and "in_order = true" in text
    with pytest.raises(RefusedError, match="lists no accepted values"):
        made_of({**BFCL, "ground_truth": [{"weather.get": {"at": [{"a": []}]}}]})


def test_an_optional_list_may_be_empty_as_an_optional_text_may() -> None:
    parameters = {
        "type": "dict",
        "required": [],
        "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "pair": {"type": "tuple"}},
    }
    function = {"name": "tag", "description": "", "parameters": parameters}
    truth = [{"tag": {"tags": [["a"], ""], "pair": [[1, 2], ""]}}]
    row = {**BFCL, "function": [function], "ground_truth": truth}
    text = " ".join(made_of(row).file.text.split())
    assert 'tags = { any_of = [{ equals_text = ["a"] }, { equals_text = [] }], optional = true }' in text
    assert "pair = { any_of = [{ equals_text = [1, 2] }, { equals_text = [] }], optional = true }" in text
    assert 'whole_numbers = "as BFCL"' in text
