"""Cases made from BFCL rows agree with the leaderboard's checker, except where `docs/compatibility.md` says so."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bfcl.checker import Made, is_right
from tests.bfcl.perturbed_calls import calls_of, perturbed
from tests.bfcl.rows import SAMPLES, Sample
from tests.example_counts import examples
from tests.exchange.importers.samples import as_lines
from tests.suite.examples import parsed
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.config.secrets import Secrets
from workbench.exchange.importers.conversations import ImportedCase, ImportedFile
from workbench.exchange.importers.forms import format_of
from workbench.exchange.importers.import_files import make_suite
from workbench.exchange.importers.source_files import source_of
from workbench.grading.run import grade_run
from workbench.suite.model import Suite

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def imported(*samples: Sample) -> Suite:
    """Rows with their answers as one suite, written and read as a file."""
    cases: list[ImportedCase] = []
    for sample in samples:
        row = sample.row | ({} if sample.answers is None else {"ground_truth": sample.answers})
        made = format_of("bfcl").read(source_of(Path(f"{sample.category}.jsonl"), as_lines(row)))
        cases += made.cases
    file = make_suite(ImportedFile(tuple(cases), made.suite), "Rows", Path("rows.toml"), Secrets()).file
    assert file.problems == () and file.suite is not None
    return file.suite


@cache
def suite() -> Suite:
    return imported(*SAMPLES)


def passes(number: int, made: Sequence[Made]) -> bool:
    case = suite().cases[number]
    return grade_run(suite(), case, trajectory_of(*made))[1] == "passed"


def by_leaderboard(sample: Sample, made: Sequence[Made]) -> bool:
    if sample.answers is None:
        return bool(made) is (sample.category == "relevance")
    return is_right(sample.row["function"], sample.answers, made)


@settings(max_examples=examples(400), deadline=None)
@given(st.integers(0, len(SAMPLES) - 1), st.data())
def test_a_case_passes_what_the_leaderboard_does(number: int, data: st.DataObject) -> None:
    sample = SAMPLES[number]
    made = data.draw(perturbed(sample))
    if not differs_as_documented(sample, made):
        assert passes(number, made) is by_leaderboard(sample, made)


def differs_as_documented(sample: Sample, made: Sequence[Made]) -> bool:
    """Return whether a number is whole but written with a fraction, or is among fractional numbers.

    JSON does not distinguish these, but Python does."""
    return any(_mixed_numbers(value) for _, arguments in made for value in arguments.values())


def _mixed_numbers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_mixed_numbers, value.values()))
    if isinstance(value, list):
        return any(map(_mixed_numbers, value)) or len({type(each) for each in value} & {int, float}) > 1
    return isinstance(value, float) and (value.is_integer() if math.isfinite(value) else True)


@each_row("number", range(len(SAMPLES)))
def test_every_answer_that_is_accepted_passes(number: int) -> None:
    sample = SAMPLES[number]
    made: list[Made] = [("anything", {})] if sample.category == "relevance" else calls_of(sample)
    assert by_leaderboard(sample, made)
    assert passes(number, made)
    assert not passes(number, [*made, *made, ("another", {})]) or sample.category == "relevance"


def test_numbers_are_those_of_json_and_not_of_python() -> None:
    sample = copy.deepcopy(SAMPLES[4])
    assert sample.answers is not None
    sample.answers[0]["measure"] = {"points": [[1.0, 2.5]], "corner": [[1, 2]]}
    one = imported(sample)
    for points, corner in ([[1, 2.5], [1, 2]], [[1.0, 2.5], [1.0, 2]]):
        made: list[Made] = [("measure", {"points": points, "corner": corner})]
        assert grade_run(one, one.cases[0], trajectory_of(*made))[1] == "passed"
        assert not by_leaderboard(sample, made)
    guests: list[Made] = [("room_book", {"guests": 2.0, "price": 80})]
    assert passes(1, guests)
    assert not by_leaderboard(SAMPLES[1], guests)


def test_two_calls_that_fit_one_answer_find_their_places() -> None:
    sample = copy.deepcopy(next(each for each in SAMPLES if each.row["id"] == "parallel_0"))
    assert sample.answers is not None
    sample.answers[0]["room.book"] = {"guests": [2, 4], "price": [""], "wishes": [""]}
    made: list[Made] = [("room_book", {"guests": 4}), ("room_book", {"guests": 2})]
    one = imported(sample)
    assert grade_run(one, one.cases[0], trajectory_of(*made))[1] == "passed"
    assert not by_leaderboard(sample, made)


def test_the_page_shows_a_case_that_agrees() -> None:
    [text] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = parsed(text)
    assert file.problems == ()
    assert file.suite is not None
    [case] = file.suite.cases
    right: dict[str, Any] = {"origin": "PARIS, france", "destination": "Lyon", "seats": 1}
    for arguments, status in ((right, "passed"), ({**right, "seats": "1"}, "failed"), ({**right, "x": 1}, "failed")):
        assert grade_run(file.suite, case, trajectory_of(("trains_find", arguments)))[1] == status
