"""The environment of a folder's suites: the process's own first, then `.env` files, which are read again after a
change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.config.models import ConfigError
from workbench.config.program import Environment
from workbench.config.secrets import Secrets


def environment(**own: str) -> Environment:
    return Environment(own, Secrets())


def test_a_dotenv_completes_the_environment_and_overrides_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('A=file\nexport B="two words" # comment\nC=$A\nD\n', encoding="utf-8")
    assert environment(A="own").of(tmp_path) == {"A": "own", "B": "two words", "C": "$A"}
    assert "B" not in os.environ


def test_the_suites_own_dotenv_comes_before_the_one_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "workbench.toml").touch()
    (tmp_path / ".env").write_text("A=outer\nB=outer\n")
    inner = tmp_path / "suites"
    inner.mkdir()
    (inner / ".env").write_text("A=inner\n")
    assert environment().of(inner) == {"A": "inner", "B": "outer"}
    assert environment().of(tmp_path) == {"A": "outer", "B": "outer"}


def test_a_dotenv_above_the_suites_alone_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=outer\n")
    inner = tmp_path / "suites"
    inner.mkdir()
    assert environment().of(inner) == {}


def test_a_changed_dotenv_is_read_again(tmp_path: Path) -> None:
    variables = environment()
    (tmp_path / ".env").write_text("A=1\n")
    assert variables.of(tmp_path) == {"A": "1"}
    (tmp_path / ".env").write_text("A=two\n")
    assert variables.of(tmp_path) == {"A": "two"}
    (tmp_path / ".env").unlink()
    assert variables.of(tmp_path) == {}


def test_a_virtual_environment_of_that_name_is_none(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert environment(A="1").of(tmp_path) == {"A": "1"}


@pytest.mark.parametrize(
    ("text", "line"),
    [("A=1\n\n# note\nMOCK_KEY sk-hidden\nB_KEY=good-4711\n", 4), ('A=1\n\nB="hidden\nB_KEY=good-4711\n', 3)],
    ids=["no =", "open quote"],
)
def test_a_line_of_a_dotenv_that_is_none_is_named_and_not_shown(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / ".env").write_text(text)
    secrets = Secrets()
    with pytest.raises(ConfigError) as raised:
        Environment({}, secrets).of(tmp_path)
    assert raised.value.problems == (f"{tmp_path / '.env'}:{line} is not NAME=value: correct it, including its quotes",)
    assert secrets.redact("good-4711") == "$B_KEY"


@pytest.mark.parametrize("content", [b"A=\xff\xfe", b"A=1\0B=2"])
def test_a_dotenv_that_is_no_text_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(ConfigError, match=r"\.env is not text with NAME=value lines"):
        environment().of(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_a_dotenv_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1")
    (tmp_path / ".env").chmod(0)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        environment().of(tmp_path)


def test_what_looks_secret_is_known_at_once_from_the_process_and_on_reading_from_files(tmp_path: Path) -> None:
    secrets = Secrets()
    variables = Environment({"OWN_KEY": "own-4711"}, secrets)
    assert secrets.redact("own-4711 file-4711 plain-4711") == "$OWN_KEY file-4711 plain-4711"
    (tmp_path / ".env").write_text("FILE_TOKEN=file-4711\nPLAIN=plain-4711\n")
    variables.of(tmp_path)
    assert secrets.redact("own-4711 file-4711 plain-4711") == "$OWN_KEY $FILE_TOKEN $PLAIN"
