"""Lists of models: a bare name after a comma takes the provider before it, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config.model_list import full_names, names_in
from workbench.config.models import PROVIDERS

KNOWN = {"offline", "local"}
BARE = st.from_regex(r"[a-z][a-z0-9.]{0,6}", fullmatch=True)
ADDRESS = st.sampled_from(["", "@http://localhost:1/v1", "@https://h.example/v1?v=1"])
WITH_PROVIDER = st.builds("{}:{}{}".format, st.sampled_from(PROVIDERS), BARE, ADDRESS)
OTHERS = st.sampled_from(["replay:runs", "offline:hasty", "offline", "local", "a:b"])
NAMES = st.lists(st.one_of(BARE, WITH_PROVIDER, OTHERS), min_size=1, max_size=6)


@given(names=NAMES)
def test_a_bare_name_takes_the_provider_and_the_address_before_it(names: list[str]) -> None:
    provider, address, expected = None, "", []
    for name in names:
        head = name.split(":")[0]
        if ":" in name and head in PROVIDERS:
            provider, address = head, name[name.index("@") :] if "@" in name else ""
        takes = ":" not in name and name not in KNOWN and provider is not None
        expected.append(f"{provider}:{name}{address}" if takes else name)
    full = full_names(names, KNOWN.__contains__)
    assert full == expected
    assert full_names(full, KNOWN.__contains__) == full, "full names stay"
    assert full[0] == names[0], "the first name is as today"


@given(names=NAMES.map(lambda names: [name.replace("a", ",") for name in names]))
def test_a_list_is_split_at_its_commas_alone(names: list[str]) -> None:
    text = " , ".join(name.replace(",", "\\,") for name in names)
    assert names_in(text) == names


@pytest.mark.parametrize("text", ["", ",", "a,", "a,,b", " "])
def test_an_empty_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a model name is empty"):
        names_in(text)
