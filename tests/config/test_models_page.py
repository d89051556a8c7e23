"""docs/models.md is true: its TOML loads, its table is complete, and its ad hoc names have the described meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workbench.config.model_book import ModelBook, spec_from_text
from workbench.config.models import DEFAULT_READ_TIMEOUT_S, PRESETS, PROVIDERS, SET_BY_PROGRAM, ModelSpec
from workbench.config.settings_file import SETTINGS, read_settings

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SERVERS = re.findall(r"^\| ([\w ]+) \| `--model (\S+?)[` ]", PAGE[PAGE.index("## Servers") :], re.MULTILINE)


def models_of(text: str, folder: Path) -> tuple[ModelSpec, ...]:
    file = folder / "workbench.toml"
    file.write_text(text, encoding="utf-8")
    return tuple(read_settings(file, "project").models.values())


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_of_toml_can_be_loaded(tmp_path: Path, block: str) -> None:
    assert models_of(block, tmp_path)


@pytest.mark.parametrize(("name", "written"), SERVERS)
def test_an_ad_hoc_name_reaches_the_known_endpoint(name: str, written: str) -> None:
    (preset,) = (preset for preset in PRESETS if preset.name == name.lower().replace(" ", "-"))
    ad_hoc = spec_from_text(written, "command line")
    assert ad_hoc is not None
    assert (ad_hoc.provider, ad_hoc.base_url) == (preset.provider, preset.base_url), name


def test_four_servers_are_there() -> None:
    assert [name for name, _ in SERVERS] == ["Ollama", "LM Studio", "vLLM", "OpenRouter"]


def test_the_table_has_every_key_and_no_other() -> None:
    table = PAGE[PAGE.index("| key | type |") : PAGE.index("### Gateways")]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(SETTINGS)
    assert all(f"`{provider}`" in table for provider in PROVIDERS)
    assert f"| {DEFAULT_READ_TIMEOUT_S:g} | seconds" in table


def test_the_known_endpoints_are_all_named() -> None:
    table = PAGE[PAGE.index("| `--preset` |") : PAGE.index("`workbench models list` lists")]
    rows = re.findall(r"^\| `([\w-]+)` \| `(\S+)` \| (?:`(\w+)` )?\|$", table, re.MULTILINE)
    assert rows == [(preset.name, preset.base_url, preset.api_key_env or "") for preset in PRESETS]


def test_what_the_program_sets_itself_is_named() -> None:
    section = PAGE[PAGE.index("## params") : PAGE.index("## Limits")]
    assert all(f"`{name}`" in section for name in SET_BY_PROGRAM)


def test_every_way_to_write_a_model_is_understood(tmp_path: Path) -> None:
    first = PAGE[: PAGE.index("## workbench.toml")]
    names = re.findall(r"^\| `([^`]+)` \|", first, re.MULTILINE)
    models_of(BLOCKS[0], tmp_path)
    book = ModelBook(Path("none"))
    for name in names:
        if name != "offline" and not name.startswith("replay:"):
            assert book.resolve(name, tmp_path, by_suite=False).name == name
