"""The models of a suite share equal parts, and copies cost nothing."""

from __future__ import annotations

import tomllib

from tests.suite.examples import CASE, HEAD, suite_of
from workbench.suite.model import Suite


def test_cases_share_the_names_of_what_is_written_in_them_and_copies_do_not() -> None:
    text = HEAD + "".join(CASE.replace('name = "', f'name = "{number} ') for number in range(3))
    suite = suite_of(text)
    assert suite == Suite.model_validate(tomllib.loads(text))
    assert suite.model_dump_json(exclude_unset=True) == Suite.model_validate(tomllib.loads(text)).model_dump_json(
        exclude_unset=True
    )
    first, second, _ = suite.cases
    assert first.__pydantic_fields_set__ is second.__pydantic_fields_set__
    changed = first.model_copy(update={"skip": "not today"})
    assert "skip" in changed.model_fields_set and "skip" not in second.model_fields_set
    assert "skip" not in first.model_fields_set
