"""The JSON Schemas of suites and settings: valid files match, files with unknown keys do not, and editors can use
them."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given, reject
from hypothesis import strategies as st

from tests.cli.program import Program
from tests.schemas import schema_of, validator_of
from tests.strategies import checks
from tests.suite.test_suite_format_page import EXAMPLES
from tests.tables import each_row
from workbench.checks.check import Check
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.render import to_toml_data
from workbench.suite.shape import ARRAYS_OF_TABLES, TABLES

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "sample_suites").glob("*.toml"))
SUITE = validator_of("suite")
SETTINGS = validator_of("workbench")


def problems(document: Any, schema: jsonschema.Draft7Validator = SUITE) -> list[str]:
    return [f"{error.json_path}: {error.message[:300]}" for error in schema.iter_errors(document)]


def test_the_files_in_the_docs_are_these(tmp_path: Path) -> None:
    program = Program(tmp_path)
    kinds = (("suite", "suite.schema.json"), ("settings", "workbench.schema.json"), ("calls", "calls.schema.json"))
    for kind, name in kinds:
        shown = program.run("schema", kind)
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == shown.stdout, (
            f"workbench schema {kind} > docs/{name}"
        )


@each_row("file", SAMPLES)
def test_samples_fit(file: Path) -> None:
    assert problems(tomllib.loads(file.read_text(encoding="utf-8"))) == []


def test_examples_of_the_format_fit() -> None:
    for text in EXAMPLES:
        if text.startswith("format = 1"):
            assert problems(tomllib.loads(text)) == []


def with_key(place: tuple[str, ...]) -> dict[str, Any]:
    """A suite in which the table at a place has a key that does not exist."""
    suite: dict[str, Any] = {"format": 1, "name": "Clock"}
    table = suite
    for depth, key in enumerate(place, start=1):
        inner: dict[str, Any] = {}
        table[key] = [inner] if place[:depth] in ARRAYS_OF_TABLES or key == "any_order" else inner
        table = inner
    table["no_such_key"] = 1
    return suite


@each_row("place", TABLES)
def test_no_table_takes_unknown_keys(place: tuple[str, ...]) -> None:
    assert any("no_such_key" in problem for problem in problems(with_key(place)))


@given(checks())
def test_every_check_fits_as_it_is_written(check: Check) -> None:
    try:
        written = to_toml_data(ExpectedCall(tool="t", args={"a": check}))
    except ValueError:
        reject()  # a null, which TOML cannot say
    assert problems({"format": 1, "name": "n", "cases": [{"name": "c", "ordered": [written]}]}) == []


@given(
    st.sampled_from(
        ["near = 3, tolerence = 1", "range = [1]", "one_of = 3", 'type = "circle", equals = 1', "similar = 3"]
    )
)
def test_a_check_with_a_wrong_key_or_value_does_not_fit(text: str) -> None:
    written = tomllib.loads(f"x = {{ {text} }}")["x"]
    suite = {"format": 1, "name": "n", "cases": [{"name": "c", "ordered": [{"tool": "t", "args": {"a": written}}]}]}
    assert problems(suite)


def test_settings_fit_and_unknown_ones_do_not() -> None:
    model = {"provider": "openai", "base_url": "http://localhost:1/v1", "params": {"temperature": 0}, "concurrency": 3}
    assert problems({"judge": "j", "models": {"j": model}}, SETTINGS) == []
    assert problems({"models": {"j": {**model, "concurency": 3}}}, SETTINGS)


def test_an_editor_that_follows_the_directive_finds_the_wrong_key(tmp_path: Path) -> None:
    """taplo, which editors use for TOML, reads `#:schema` as they do."""
    (tmp_path / "suite.schema.json").write_text(json.dumps(schema_of("suite")))
    good = '#:schema ./suite.schema.json\nformat = 1\nname = "Clock"\n\n[[cases]]\nname = "Time"\nuser = "Time?"\n'
    (tmp_path / "clock.toml").write_text(good)
    command = [str(Path(sys.executable).with_name("taplo")), "lint", "clock.toml"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (tmp_path / "clock.toml").write_text(good.replace("user =", "usr ="))
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode != 0 and "usr" in found.stderr
