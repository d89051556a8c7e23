"""The modules that a start imports. Importing is most of the cost of a short command."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.providers.server import APIS, Call, base_url_of, said, serve
from workbench.cli.main import COMMANDS, WORDS

ROOT = Path(__file__).parent.parent

SUITE = """format = 1
name = "One"

[[tools]]
name = "get_weather"
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }

[[mocks]]
tool = "get_weather"
result = { degrees = 21 }

[[cases]]
name = "Paris"
user = "What is the weather in Paris?"
ordered = [{ tool = "get_weather", args = { city = "Paris" } }]
"""

OF_PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}

NOT_PACKAGES = {"workbench", "__main__", "cython_runtime"}

NOT_FOR_A_RUN = {
    *(
        "workbench.providers.http",
        "workbench.providers.wire",
        "workbench.tools.session",
    ),
    *("workbench.evaluation.baseline", "workbench.show.json.report", "workbench.engine.stepper"),
    "workbench.grading.explanation",
    *("urllib.request", "http.client", "rich.text", "multiprocessing"),
    *("importlib.metadata", "importlib.resources", "email", "zipfile"),
}


def modules_of(words: list[str], folder: Path, code: int = 0, variables: Mapping[str, str] | None = None) -> list[str]:
    """The modules that a command has loaded at its end."""
    program = f"""
import contextlib, io, sys
from workbench.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    code = main({words!r})
    assert code == {code}, code
print(*sys.modules, sep="\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(variables or {})},
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "packages", "most"),
    [
        (["--version"], set[str](), 15),
        (["--help"], set[str](), 15),
        (["validate", "one.toml"], {*OF_PYDANTIC, "rich", "platformdirs"}, 110),
        (["run", "one.toml", "--no-history"], {*OF_PYDANTIC, "rich", "platformdirs", "rapidfuzz"}, 250),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_imports_what_it_needs(words: list[str], packages: set[str], most: int, tmp_path: Path) -> None:
    tmp_path.joinpath("one.toml").write_text(SUITE)
    loaded = modules_of(words, tmp_path)
    others = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - NOT_PACKAGES
    assert {name for name in others if not name.startswith(("_", "sitecustomize"))} <= packages
    assert len([name for name in loaded if name.startswith("workbench")]) <= most
    assert not NOT_FOR_A_RUN.intersection(loaded)


SDKS = {"openai", "anthropic", "boto3", "botocore", "google", "azure"}


@pytest.mark.slow
def test_models_behind_endpoints_are_asked_without_the_sdks_of_their_vendors(tmp_path: Path) -> None:
    tmp_path.joinpath("one.toml").write_text(SUITE)
    words = ["run", "one.toml", "--no-history"]
    with ExitStack() as stack:
        servers = []
        for api in APIS:
            called = said(api, calls=[Call("get_weather", {"city": "Paris"})])
            servers.append(stack.enter_context(serve(called, said(api, "It is warm."))))
            words += ["--model", f"{api}:m@{base_url_of(servers[-1], api)}"]
        loaded = modules_of(words, tmp_path)
    assert [len(server.requests) for server in servers] == [2] * len(APIS)
    assert "aiohttp" in loaded and not SDKS.intersection(loaded)


@pytest.mark.slow
def test_the_variables_of_a_vendors_sdk_are_read_without_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        proxy = f"http://127.0.0.1:{closed.getsockname()[1]}"
    variables = {
        "OPENAI_API_KEY": "sk-1",
        "OPENAI_ORG_ID": "org",
        "OPENAI_PROJECT_ID": "p",
        "OPENAI_CUSTOM_HEADERS": "a: b",
        "ANTHROPIC_API_KEY": "sk-2",
        "ANTHROPIC_CUSTOM_HEADERS": "a: b",
        "HTTPS_PROXY": proxy,
    }
    words = ["models", "--check", "--model", "openai:m,openai-responses:m,anthropic:m"]
    loaded = modules_of(words, tmp_path, 3, variables)
    assert "aiohttp" in loaded and not SDKS.intersection(loaded)


HELP = """
import contextlib, io, json, os, sys
for name in sys.argv[1:]:
    sys.stdout.flush()
    if os.fork() == 0:
        from workbench.cli.main import main
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            code = main([*name.split(), "--help"])
            assert code == 0, code
        print(json.dumps([name, [*sys.modules]]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""
"""Prints the modules that each command has loaded after its help: each in a process that has loaded nothing before."""


@pytest.mark.slow
def test_the_help_of_a_command_imports_nothing_of_what_it_executes(tmp_path: Path) -> None:
    names = [*COMMANDS, *WORDS]
    command = [sys.executable, "-c", HELP, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, stdin=subprocess.DEVNULL)
    loaded_by_name = dict(map(json.loads, done.stdout.splitlines()))
    assert [*loaded_by_name] == names
    for name, loaded in loaded_by_name.items():
        others = {module.partition(".")[0] for module in loaded} - sys.stdlib_module_names - NOT_PACKAGES
        assert {module for module in others if not module.startswith(("_", "sitecustomize"))} == set(), name
        assert len([module for module in loaded if module.startswith("workbench")]) <= 26, name
        assert not {"asyncio", "sqlite3", "tomllib", "logging"}.intersection(loaded), name


@pytest.mark.slow
def test_a_module_that_was_loaded_for_its_options_is_loaded_anew_to_be_executed(tmp_path: Path) -> None:
    program = """
from workbench.cli.main import COMMANDS, parser_of
for name in COMMANDS:
    parser_of(name)
from workbench.cli.run import create_program
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


def test_no_group_is_possessive() -> None:
    """Python 3.11.0 to 3.11.2 match possessive groups incorrectly."""
    possessive = re.compile(r"\)[*+?]\+|\(\?>")
    for file in (ROOT / "workbench").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        lines = text.split("\n") if possessive.search(text) else []
        assert not [line for line in lines if possessive.search(line) and re.search(r"\br['\"]", line)], file
