"""What holds of every form: its sample loads, its runs grade, nothing makes it fail, and the page names it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.exchange.importers.samples import DIALECTS, FIELDS, SAMPLES
from tests.sampled_rows import first_of
from tests.strategies import json_values
from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.engine.recordings import result_of_recording
from workbench.exchange.importers.forms import FORMS, format_of, forms_that_fit
from workbench.exchange.importers.import_files import ImportOptions, import_file, make_suite, run_of
from workbench.exchange.importers.source_files import RefusedError, source_of
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import JsonValue
from workbench.trajectory.recording import read_recording, recordings_in

ROOT = Path(__file__).parents[3]
EVERY = {form: (form, *sample) for form, sample in SAMPLES.items()} | DIALECTS


def test_every_form_has_a_sample_and_a_row_on_its_page() -> None:
    page = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    section = page[page.index("## Forms") : page.index("## Conversations")]
    assert re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE) == list(FORMS) == list(SAMPLES)


@pytest.mark.parametrize("sample", EVERY)
def test_a_sample_becomes_a_suite_that_loads_and_runs_that_grade(sample: str, tmp_path: Path) -> None:
    form, name, content = EVERY[sample]
    file = tmp_path / name
    file.write_bytes(content)
    fields = FIELDS if form == "table" else None
    report = import_file(
        ImportOptions(file, tmp_path / "made.toml", recordings=tmp_path / "runs", fields=fields), Secrets()
    )
    assert report.form == form
    made = load_suite(tmp_path / "made.toml")
    assert made.suite is not None and not made.errors
    assert made.suite.cases
    recordings = [*map(read_recording, recordings_in(tmp_path / "runs"))] if report.recorded else []
    assert len(recordings) == report.recorded == sum(len(case.runs) for case in report.made.cases)
    for recording in recordings:
        assert result_of_recording(recording).status in ("passed", "warned", "failed")
    with pytest.raises(RefusedError, match="exists: name another file with -o"):
        import_file(ImportOptions(file, tmp_path / "made.toml"), Secrets())


@each_row("sample", EVERY)
def test_a_sample_has_one_form_alone(sample: str) -> None:
    form, name, content = EVERY[sample]
    assert forms_that_fit(source_of(Path(name), content)) == [form]


def _changed(value: JsonValue, path: list[int], by: JsonValue) -> JsonValue:
    """Return a value with one part replaced. `path` chooses the part."""
    if not path or not isinstance(value, dict | list) or not value:
        return by
    if isinstance(value, dict):
        key = [*value][path[0] % len(value)]
        return {**value, key: _changed(value[key], path[1:], by)}
    at = path[0] % len(value)
    return [*value[:at], _changed(value[at], path[1:], by), *value[at + 1 :]]


def _imports_or_refuses(form: str, name: str, content: bytes) -> None:
    """Whatever a file holds, it becomes a suite without errors and runs that grade, or is refused."""
    try:
        source = source_of(Path(name), content, FIELDS)
        forms_that_fit(source)
        made = make_suite(format_of(form).read(source), source.name, Path("made.toml"), Secrets())
    except RefusedError as error:
        assert str(error)
        return
    assert made.file.suite is not None
    for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
        for run in imported.runs:
            run_of(made.file, case, run, 0)


@pytest.mark.parametrize("form", first_of(FORMS, 6))
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=json_values)
def test_any_json_is_imported_or_refused(form: str, value: JsonValue) -> None:
    _imports_or_refuses(form, "any.json", json.dumps(value).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("sample", first_of(EVERY, 8))
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.lists(st.tuples(st.lists(st.integers(0, 20), max_size=9), json_values), min_size=1, max_size=3))
def test_a_sample_with_anything_in_it_is_imported_or_refused(
    sample: str, changes: list[tuple[list[int], JsonValue]]
) -> None:
    form, name, content = EVERY[sample]
    source = source_of(Path(name), content)
    changed: JsonValue = source.root.value
    for path, by in changes:
        changed = _changed(changed, path, by)
    if source.kind == "lines" and isinstance(changed, list):
        text = "".join(f"{json.dumps(each)}\n" for each in changed)
    else:
        text = json.dumps(changed)
    _imports_or_refuses(form, "any.json", text.encode())


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(content=st.binary(max_size=60), ending=st.sampled_from(["json", "jsonl", "yaml", "csv", "tsv", "txt"]))
def test_any_bytes_are_imported_or_refused(form: str, content: bytes, ending: str) -> None:
    _imports_or_refuses(form, f"any.{ending}", content)
