"""Headers and queries of requests: how they are joined, written and read, for any content."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.config.model_book import spec_from_text
from workbench.config.models import ModelSpec
from workbench.config.request_checks import checked_command, checked_headers, checked_query
from workbench.config.request_settings import settings_of, settings_text, split_address, with_query

TEXTS = st.text(max_size=12)
PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
QUERIES = st.dictionaries(st.text(min_size=1, max_size=6), TEXTS, max_size=4)


@given(before=QUERIES, added=QUERIES)
def test_a_query_joins_one_that_is_there(before: dict[str, str], added: dict[str, str]) -> None:
    path = with_query("/v1/models", before.items())
    joined = urlsplit(with_query(path, added.items()))
    assert joined.path == "/v1/models" and joined.fragment == ""
    assert dict(parse_qsl(joined.query, keep_blank_values=True)) == {**before, **added}
    assert len(parse_qsl(joined.query, keep_blank_values=True)) == len({**before, **added})


@given(query=QUERIES)
def test_a_query_in_an_address_is_read_as_it_is_sent(query: dict[str, str]) -> None:
    base_url, read = split_address(with_query("http://localhost:1/v1", query.items()))
    assert base_url == "http://localhost:1/v1"
    assert {name: value.replace("$$", "$") for name, value in read.items()} == query


@given(settings=st.dictionaries(st.text(min_size=1, max_size=6).filter(lambda name: "=" not in name), TEXTS))
def test_written_settings_are_read_again(settings: dict[str, str]) -> None:
    assert settings_of(settings_text(settings)) == settings


@given(headers=st.dictionaries(PRINTABLE, st.text(max_size=12), max_size=3))
def test_headers_that_are_accepted_can_be_sent(headers: dict[str, str]) -> None:
    try:
        checked_headers(headers)
    except ValueError:
        return
    for name, value in headers.items():
        line = f"{name}: {value}"
        assert line.isascii() and line.isprintable() and line.partition(":")[0].strip() == name != ""


@each_row(
    ("name", "value"),
    [
        ("x-portkey-config", "abc"),
        ("x-portkey-config", '{"retry": {"attempts": 3}}'),
        ("x-tenant", "123e4567-e89b-12d3-a456-426614174000"),
        ("anthropic-beta", "prompt-caching-2024-07-31,token-efficient-tools-2025-02-19"),
        ("helicone-cache-enabled", "true"),
        ("x-portkey-api-key", "$PORTKEY"),
        ("authorization", "Bearer ${TOKEN}"),
        ("x-price", "$$5"),
    ],
)
def test_literals_that_are_no_secrets_and_variables_are_accepted(name: str, value: str) -> None:
    assert checked_headers({name: value})
    assert checked_query({name: value})


def spec(headers: dict[str, str], query: dict[str, str]) -> ModelSpec:
    return ModelSpec("m", "openai", "m", "http://h/v1", headers=headers, query=query)


@given(one=st.tuples(QUERIES, QUERIES), other=st.tuples(QUERIES, QUERIES))
def test_endpoints_are_equal_if_and_only_if_headers_and_query_are(
    one: tuple[dict[str, str], dict[str, str]], other: tuple[dict[str, str], dict[str, str]]
) -> None:
    lower = [({name.lower(): value for name, value in headers.items()}, query) for headers, query in (one, other)]
    assert (spec(*one).endpoint == spec(*other).endpoint) == (lower[0] == lower[1])
    assert spec({}, {}).endpoint == "http://h/v1"


def test_an_address_in_a_name_may_have_a_query() -> None:
    found = spec_from_text("openai:m@http://localhost:1/v1?api-version=2024-10-21&x=$HOME", "suite")
    assert found is not None
    assert (found.model, found.base_url) == ("m", "http://localhost:1/v1")
    assert found.query == {"api-version": "2024-10-21", "x": "$$HOME"} and found.variables == ()


def test_a_path_with_a_random_folder_is_no_secret_of_a_command() -> None:
    words = ("/tmp/tmp.GtMGXS8jmB/bin/python", "--out=~/x1Y2z3A4b5C6d7E8/key.txt")
    assert checked_command(words) == words
    for secret in ("gtMGX1S8jmB2c3D4e5", "--key=gtMGX1S8jmB2c3D4e5"):
        with pytest.raises(ValueError, match="looks like a secret"):
            checked_command(("program", secret))
