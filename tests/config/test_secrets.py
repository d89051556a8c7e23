"""Secret values, and texts from which they were removed."""

from __future__ import annotations

import base64
import json
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.tables import each_row
from workbench.checks.value_kinds import Equals
from workbench.config.secrets import RedactedPieces, Secrets


def secrets_of(**values: str) -> Secrets:
    secrets = Secrets()
    for name, value in values.items():
        secrets.add(name, value)
    return secrets


def test_a_secret_is_replaced_by_its_variables_name_in_every_form_and_the_longest_wins() -> None:
    secrets = secrets_of(API_KEY="sk-4711", SHORT="abc-1", LONG="xabc-1x", PASS='qu"ote\\ü\x1b')
    assert secrets.redact("Bearer sk-4711, sk-4711!") == "Bearer $API_KEY, $API_KEY!"
    assert secrets.redact("xabc-1x abc-1") == "$LONG $SHORT"
    assert secrets.redact(json.dumps(['qu"ote\\ü\x1b'])) == secrets.redact('["qu\\"ote\\\\ü\\u001b"]') == '["$PASS"]'
    assert secrets.redact(repr({"a": 'qu"ote\\ü\x1b'})) == "{'a': '$PASS'}"
    known = secrets.finder
    secrets.add("API_KEY", "sk-4711")
    assert secrets.finder is known


@pytest.mark.parametrize("value", ["", "x", "true", "False", "ollama", "lm-studio", "sk-no-key-required", "EMPTY", "/"])
def test_what_is_no_value_is_no_secret_though_it_is_used_as_a_key(value: str, tmp_path: Path) -> None:
    assert secrets_of(API_KEY=value, ROOT=str(tmp_path)).values == ()


@each_row("value", ["abc", "8080", "production", "correcthorse", "/9j/4AAQSkZJRg", "zz-471", "12 34"])
def test_what_was_really_used_is_secret_also_if_it_is_short_or_plain(value: str) -> None:
    assert secrets_of(DB_PASS=value).redact(f"It is {value}.") == "It is $DB_PASS."


def test_a_short_value_of_letters_and_digits_is_a_word_of_its_own() -> None:
    secrets = secrets_of(DB_PASS="test")
    assert secrets.redact("the latest test, tested\\ntest:test \x1b[1mtest") == (
        "the latest $DB_PASS, tested\\n$DB_PASS:$DB_PASS \x1b[1m$DB_PASS"
    )
    assert secrets_of(STAGE="dev").values == (), "three characters under a name that says nothing"


@each_row(
    ("name", "value", "in_file", "in_environment"),
    [
        ("OPENAI_API_KEY", "sk-proj-abcdefghijkl", True, True),
        ("apiKey", "value-4711", True, True),
        ("PGPASSWORD", "hunter2x", True, True),
        ("GH_PAT", "ghp_abcdefghijkl", True, True),
        ("JWT", "eyJhbGciOi.JIUzI1.NiJ9", True, True),
        ("AWS_SECRET_2", "AbCdEfGh/IjKlMnOp", True, True),
        ("PIN_KEY", "12345678", True, True),
        ("DB_PASS", "correcthorse", True, False),
        ("ANYTHING", "planted-value-8151", True, False),
        ("GREETING", "correct horse battery", True, False),
        ("POSTGRES_PASSWORD", "postgres", False, False),
        ("SORT_KEY", "postgres", False, False),
        ("SORT_KEY", "created_at", False, False),
        ("CACHE_KEY", "customerOrderItems", False, False),
        ("API_KEY", "12345", False, False),
        ("MODEL", "gpt-4o-mini", False, False),
        ("PATH", "/no/such/folder", False, False),
        ("CREDENTIAL_HELPER", "osxkeychain", False, False),
        ("TOKEN_URL", "https://login.test/token", False, False),
        ("KEY_HOST", "db.example.com:5432", False, False),
        ("DEBUG", "true", False, False),
    ],
)
def test_what_nothing_has_used_is_secret_by_where_it_stands_its_name_and_its_look(
    name: str, value: str, in_file: bool, in_environment: bool
) -> None:
    of_file, of_environment = Secrets(), Secrets()
    of_file.add_from_file(name, value)
    of_environment.add_if_it_looks_secret(name, value)
    assert (of_file.values != (), of_environment.values != ()) == (in_file, in_environment)


def test_the_password_in_an_address_is_secret_everywhere_and_a_plain_word_only_behind_its_user() -> None:
    secrets = Secrets()
    secrets.add_if_it_looks_secret("DATABASE_URL", "postgres://app:s3cr%3Dt-pw@db.test/shop")
    secrets.add_if_it_looks_secret("LOCAL_URL", "postgres://postgres:postgres@localhost/db")
    secrets.add_passwords("shop", "https://app:${SHOP_TOKEN}@shop.test")
    assert secrets.redact("Bearer ${SHOP_TOKEN}") == "Bearer ${SHOP_TOKEN}"
    assert (
        secrets.redact("at db.test with s3cr%3Dt-pw or s3cr=t-pw") == "at db.test with $DATABASE_URL or $DATABASE_URL"
    )
    assert secrets.redact("postgres://postgres:postgres@localhost runs postgres") == (
        "postgres://postgres:$LOCAL_URL@localhost runs postgres"
    )


LONG = "sp+y/k3y=ü&value"


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_a_long_secret_is_found_encoded(before: bytes, after: bytes) -> None:
    secrets = secrets_of(API_KEY=LONG)
    whole = before + LONG.encode() + after
    for text in (base64.b64encode(whole).decode(), base64.urlsafe_b64encode(whole).decode().rstrip("=")):
        shown = secrets.redact(text)
        assert "$API_KEY" in shown
        left = shown.split("$API_KEY")
        assert len("".join(left)) <= len(base64.b64encode(before)) + len(base64.b64encode(after)) + 4
    for text in (quote(LONG), quote(LONG, safe=""), quote(LONG, safe="").lower()):
        assert secrets.redact(f"?key={text}&x") == "?key=$API_KEY&x"


VALUE = st.text("abc-1", min_size=4, max_size=7).filter(lambda value: not value.isalnum())


@given(st.lists(VALUE, min_size=1, max_size=3), st.lists(st.text("abc-1 ", max_size=8), min_size=2), st.data())
def test_no_cutting_of_a_stream_lets_a_secret_through(values: list[str], words: list[str], data: st.DataObject) -> None:
    secrets = secrets_of(**{f"K{'Y' * number}": value for number, value in enumerate(values)})
    text = data.draw(st.sampled_from(values)).join(words)
    pieces, at = RedactedPieces(), 0
    told = ""
    while at < len(text):
        size = data.draw(st.integers(1, 5))
        told += pieces.add(text[at : at + size], secrets.finder)
        at += size
    told += pieces.flush(secrets.finder)
    assert told == secrets.redact(text)
    assert not [value for value in values if value in told]


class _Pair(NamedTuple):
    text: str
    verdict: str


@dataclass(frozen=True)
class _Record:
    text: str
    kind: Literal["key-4711"]
    inner: tuple[object, ...]
    size: int = 12345678


class _Model(BaseModel):
    text: str
    records: dict[str, int] = {}


def test_values_are_redacted_through_and_through_and_what_holds_no_secret_stays_the_same_object() -> None:
    secrets = secrets_of(API_KEY="key-4711", PIN="12345678")
    clean = {"a": [1, 2, {"b": "c"}]}
    record = _Record(
        "a key-4711",
        "key-4711",
        (
            {"key-4711": [12345678, True, None, 1.5], "clean": clean},
            _Pair("key-4711", "key-4711"),
            _Model(text="key-4711"),
        ),
    )
    shown = secrets.redacted(record)
    inner = {"$API_KEY": ["$PIN", True, None, 1.5], "clean": clean}
    assert shown == _Record("a $API_KEY", "key-4711", (inner, _Pair("$API_KEY", "key-4711"), _Model(text="$API_KEY")))
    assert shown.inner[0]["clean"] is clean  # type: ignore[index]
    same = _Record("none", "key-4711", (clean, _Pair("none", ""), _Model(text="none")))
    assert secrets.redacted(same) is same


def test_a_zero_that_is_a_secret_is_found_in_a_record() -> None:
    shown = secrets_of(API_KEY="0.0").redacted(Equals(equals=0.0))
    assert shown == Equals(equals="$API_KEY")


SPELLING = st.text('ab1"\\/ü\n\x1bu0\ud800', min_size=2, max_size=14)


def replaced_one_by_one(value: object, secrets: Secrets) -> object:
    """Each text and each number of a JSON value by itself."""
    if isinstance(value, dict):
        items = ((replaced_one_by_one(key, secrets), item) for key, item in value.items())
        return {key: replaced_one_by_one(item, secrets) for key, item in items}
    if isinstance(value, list):
        return [replaced_one_by_one(item, secrets) for item in value]
    if isinstance(value, str):
        return secrets.redact(value)
    shown = secrets.redact(str(value))
    return value if value in (None, True) or shown == str(value) else shown


@given(st.lists(SPELLING | st.integers(10).map(str), min_size=1, max_size=3), st.data())
def test_a_search_of_the_whole_finds_all_that_is_found_in_each_text(values: list[str], data: st.DataObject) -> None:
    secrets = secrets_of(**{f"KEY_{number}": value for number, value in enumerate(values)})
    spelling = st.sampled_from([value for _, value in secrets.values] or ["none"])
    text = st.lists(spelling | st.text('ab1"\\ü\n\x1bm%\ud800', max_size=3), max_size=3).map("".join)
    leaves = text | st.integers() | st.sampled_from([int(value) for value in values if value.isdecimal()] or [1])
    json_value = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=6)
    value = data.draw(json_value)
    assert secrets.redacted(value) == replaced_one_by_one(value, secrets)
    record = _Record(data.draw(text), "key-4711", (value,))
    shown = secrets.redacted(record)
    assert (shown.text, list(shown.inner)) == (secrets.redact(record.text), [replaced_one_by_one(value, secrets)])


@pytest.mark.slow
def test_half_a_million_small_strings_take_little_memory() -> None:
    secrets = secrets_of(**{f"KEY_{number}": f"sk-{number}-planted/value+{number * 7919}" for number in range(8)})
    value = {"items": [f"text {number % 997}" for number in range(500_000)]}
    size = len(json.dumps(value))
    tracemalloc.start()
    assert secrets.redacted(value) is value
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * size
    value["items"][250_000] = "sk-3-planted/value+23757"
    assert secrets.redacted(value)["items"][250_000] == "$KEY_3"


@given(st.text(min_size=4, max_size=20), st.lists(st.booleans(), max_size=3), st.text('a \\"é\n', max_size=3))
def test_nothing_of_a_secret_is_readable_in_json_within_json(value: str, levels: list[bool], beside: str) -> None:
    secrets = secrets_of(API_KEY=value)
    assume(secrets.values)
    text, shown = f"{beside}|{value}|{beside}", f"{beside}|$API_KEY|{beside}"
    for ensure_ascii in levels:
        text, shown = (json.dumps({"k": each}, ensure_ascii=ensure_ascii) for each in (text, shown))
    assume(value not in beside and shown.count(value) == 0)
    assert secrets.redact(text) == shown


@pytest.mark.parametrize(
    "written",
    [
        r"p\"l\\an\/ted\u00e9&<more",
        r"p\"l\\an/tedé\u0026\u003cmore",
        quote(r"p\"l\\an/tedé&<more"),
        quote(r"p\"l\\an/ted\u00e9&<more", safe=""),
        base64.b64encode(json.dumps('p"l\\an/tedé&<more').encode()).decode(),
    ],
)
def test_a_secret_is_found_in_the_json_of_other_languages_and_encoded(written: str) -> None:
    shown = secrets_of(API_KEY='p"l\\an/tedé&<more').redact(f"is {written}")
    assert "$API_KEY" in shown
    assert len(shown.replace("$API_KEY", "")) < 10
