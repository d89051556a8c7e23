from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from workbench.providers.wire.tool_calls import ToolNames, accepted_names


def test_accepted_names_stay_as_they_are() -> None:
    assert ToolNames(["get_weather", "a-B_9"]).accepted_name("a-B_9") == "a-B_9"


def test_a_name_with_dots_is_mapped_and_mapped_back() -> None:
    names = ToolNames(["home.set_tv"])
    assert names.accepted_name("home.set_tv") == "home_set_tv"
    assert names.suite_name("home_set_tv") == "home.set_tv"


def test_names_that_would_become_the_same_stay_apart() -> None:
    names = ToolNames(["a.b", "a/b", "a_b"])
    assert [names.accepted_name(name) for name in ("a.b", "a/b", "a_b")] == ["a_b_2", "a_b_3", "a_b"]


def test_long_names_are_cut_and_stay_apart() -> None:
    first, second = "x" * 70, "x" * 71
    names = ToolNames([first, second])
    assert names.accepted_name(first) == "x" * 64
    assert names.accepted_name(second) == "x" * 62 + "_2"


def test_a_name_that_the_model_invents_is_itself() -> None:
    names = ToolNames(["home.set_tv"])
    assert names.suite_name("launch.rocket") == "launch.rocket"
    assert not names.offers("launch.rocket")


def test_an_invented_name_goes_back_to_the_model_in_an_accepted_form() -> None:
    assert ToolNames([]).accepted_name("launch.rocket") == "launch_rocket"
    assert ToolNames([]).accepted_name("") == "unnamed"


def test_other_names_may_be_of_any_length() -> None:
    assert accepted_names(["i" * 90, "a:1"]) == {"i" * 90: "i" * 90, "a:1": "a_1"}


@given(st.lists(st.text(alphabet="ab._-é ", max_size=70), unique=True))
def test_all_names_are_accepted_unique_and_come_back(names: list[str]) -> None:
    mapped = ToolNames(names)
    accepted = [mapped.accepted_name(name) for name in names]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in accepted)
    assert len(set(accepted)) == len(names)
    assert [mapped.suite_name(name) for name in accepted] == names
