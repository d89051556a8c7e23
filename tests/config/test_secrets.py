"""Which values are kept secret, and what text with them looks like."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from workbench.config.secrets import Secrets


def test_a_secret_is_replaced_by_its_variables_name() -> None:
    secrets = Secrets()
    secrets.add("API_KEY", "sk-4711")
    assert secrets.redact("Bearer sk-4711, sk-4711!") == "Bearer $API_KEY, $API_KEY!"


def test_what_is_known_already_changes_nothing() -> None:
    secrets = Secrets()
    secrets.add("API_KEY", "sk-4711")
    known = secrets.values
    secrets.add("API_KEY", "sk-4711")
    assert secrets.values is known


def test_the_longest_secret_wins() -> None:
    secrets = Secrets()
    secrets.add("SHORT", "abc1")
    secrets.add("LONG", "xabc1x")
    assert secrets.redact("xabc1x abc1") == "$LONG $SHORT"


def test_a_secret_is_found_as_json_writes_it_too() -> None:
    secrets = Secrets()
    secrets.add("PASS", 'qu"ote\\ü')
    assert secrets.redact(r'{"a": "qu\"ote\\ü", "b": "qu\"ote\\\u00fc"}') == '{"a": "$PASS", "b": "$PASS"}'


def test_a_secret_is_found_as_python_writes_it_too() -> None:
    secrets = Secrets()
    secrets.add("PASS", 'qu"ote\\ü\x1b')
    assert secrets.redact(repr({"a": 'qu"ote\\ü\x1b'})) == "{'a': '$PASS'}"


@pytest.mark.parametrize(
    "value",
    ["", "abc", "true", "False", "8080", "1234567", "3.14", "ollama", "lm-studio", "sk-no-key-required", "EMPTY", "/"],
)
def test_ordinary_values_are_no_secrets(value: str) -> None:
    secrets = Secrets()
    secrets.add("API_KEY", value)
    assert secrets.values == ()


def test_a_folder_that_exists_is_no_secret_but_what_only_looks_like_one_is(tmp_path: Path) -> None:
    secrets = Secrets()
    secrets.add("ROOT", str(tmp_path))
    assert secrets.values == ()
    secrets.add("API_KEY", "/9j/4AAQSkZJRg")
    assert secrets.redact("/9j/4AAQSkZJRg") == "$API_KEY"


def test_a_plain_word_is_secret_only_where_the_name_says_so() -> None:
    secrets = Secrets()
    secrets.add("STAGE", "production")
    assert secrets.values == ()
    secrets.add("DB_PASSWORD", "swordfish")
    assert secrets.redact("swordfish in production") == "$DB_PASSWORD in production"


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "GITHUB_TOKEN", "apiKey", "MyAPIKey", "DB_PASSWD", "GH_PAT", "AWS_SECRET_2", "my-secret"]
)
def test_names_that_speak_of_secrets_are_believed(name: str) -> None:
    secrets = Secrets()
    secrets.guess(name, "value-4711")
    assert secrets.redact("value-4711") == f"${name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "value-4711"),
        ("KEYBOARD", "value-4711"),
        ("MONKEY", "value-4711"),
        ("MAX_TOKENS", "value-4711"),
        ("PATTERN", "value-4711"),
        ("API_KEY", "val-471"),
        ("CREDENTIAL_HELPER", "osxkeychain"),
        ("TOKEN_URL", "https://login.test/token"),
    ],
)
def test_what_nothing_refers_to_is_secret_only_if_it_looks_like_it(name: str, value: str) -> None:
    secrets = Secrets()
    secrets.guess(name, value)
    assert secrets.values == ()


@dataclass(frozen=True)
class _Record:
    text: str
    kind: str
    inner: tuple[object, ...]


def test_values_are_redacted_through_and_through() -> None:
    secrets = Secrets()
    secrets.add("API_KEY", "key-4711")
    secrets.add("PIN", "12345678")
    record = _Record("a key-4711", "key-4711", ({"key-4711": [12345678, True, None, 1.5]},))
    assert secrets.redacted(record) == _Record("a $API_KEY", "key-4711", ({"$API_KEY": ["$PIN", True, None, 1.5]},))
