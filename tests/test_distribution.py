"""The further files of a wheel: usable shell completions, and the man page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hatch_build import shared_files
from tests.sampled_rows import first_of
from workbench.cli.main import COMMANDS, WORDS
from workbench.version import __version__

ROOT = Path(__file__).parents[1]

OFFER = """
. "$1"; shift; name=$1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_${name//-/_} "$name" "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""What bash does at a TAB."""


@pytest.fixture(scope="module")
def shared() -> dict[str, str]:
    return shared_files(ROOT)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["hist"], {"history"}),
        (["run", "--fo"], {"--format"}),
        (["run", "--by", ""], {"critics", "decision", "accuracy", "trajectory", "dimensions"}),
        (["history", "fl"], {"flaky"}),
        (["models", ""], {"add", "list", "check"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("name", first_of(["workbench", "toolcall-workbench"], 1))
def test_bash_completes(shared: dict[str, str], tmp_path: Path, name: str, words: list[str], offered: set[str]) -> None:
    file = tmp_path / name
    file.write_text(shared[f"share/bash-completion/completions/{name}"])
    said = subprocess.run(
        ["bash", "-c", OFFER, "bash", str(file), name, *words], capture_output=True, text=True, check=True
    )
    assert set(said.stdout.split()) == offered, said.stderr


def test_the_other_shells_know_every_command(shared: dict[str, str]) -> None:
    for place in ("zsh/site-functions/_workbench", "fish/vendor_completions.d/workbench.fish"):
        assert all(command in shared[f"share/{place}"] for command in COMMANDS)


def test_the_page_names_the_files_that_there_are(shared: dict[str, str]) -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    named = re.findall(r"ENV/(share/[\w./-]+\w)", page)
    assert len(named) == 4
    assert all(any(f"{file}/".startswith(f"{place}/") for file in shared) for place in named)


def test_the_man_page_has_every_command(shared: dict[str, str]) -> None:
    page = shared["share/man/man1/workbench.1"].replace("\\-", "-")
    assert all(f"workbench {command}" in page for command in (*COMMANDS, *WORDS, "history show"))
    assert "--no-history" in page and str(ROOT) not in page


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    entries = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert entries[0] == __version__
    assert len(set(entries)) == len(entries)
