"""The environment variables and the folder of a started server: what is passed on, withheld and reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cli.program import Program
from tests.sampled_rows import first_rows
from tests.tools.conftest import SERVERS

WORKSHOP = f'command = ["python", "{SERVERS}/workshop.py"]'
PROXY = "http://proxy.corp.test:3128"


def suite(server: str, name: str = "shop") -> str:
    return f'format = 1\nname = "{name}"\n\n[[servers]]\nname = "{name}"\n{server}\n'


def seen_by(program: Program, variable: str) -> str:
    done = program.run("tools", "shop.toml", "--trust", "--call", "variable", "--args", f'{{"name": "{variable}"}}')
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_proxies_pass_and_their_addresses_are_redacted(program: Program) -> None:
    program = replace(
        program,
        variables={
            "HTTPS_PROXY": PROXY,
            "http_proxy": "http://anna:pw@proxy.corp.test:3128",
        },
    )
    program.write("shop.toml", suite(WORKSHOP))
    assert seen_by(program, "HTTPS_PROXY") == "$HTTPS_PROXY"
    assert seen_by(program, "http_proxy") == "(not set)"
    program.write("shop.toml", suite(f'{WORKSHOP}\nenv = {{ http_proxy = "$http_proxy" }}'))
    assert seen_by(program, "http_proxy") == "$http_proxy"


@pytest.mark.slow
def test_the_question_lists_what_passes_and_asks_again_only_for_more(program: Program) -> None:
    program.write("shop.toml", suite(WORKSHOP))
    trusted = replace(program, variables={"HTTPS_PROXY": PROXY, "UV_OFFLINE": "1"})
    with trusted.ask("tools", "shop.toml") as asked:
        asked.wait_for("give its commands these variables of your shell: HTTPS_PROXY, UV_OFFLINE")
        asked.answer("yes")
        assert "add" in asked.end()
    for variables, code in (
        ({"HTTPS_PROXY": "http://other.corp.test:1", "UV_OFFLINE": "1"}, 0),
        ({"HTTPS_PROXY": PROXY}, 0),
        ({}, 0),
        ({"HTTPS_PROXY": PROXY, "PIP_CERT": "/x.pem"}, 2),
        # A variable with a password is never passed on, so there is no question.
        ({"HTTPS_PROXY": PROXY, "NPM_CONFIG_PROXY": "http://u:p@h.test"}, 0),
    ):
        done = replace(program, variables=variables).run("tools", "shop.toml")
        assert done.returncode == code, (variables, done.stderr)
    assert "PIP_CERT" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "says", "expected"),
    first_rows(
        [
            (
                {"MCP_HUB": "x", "A_KEY": "y"},
                "MCP_HUB is missing",
                'of the shell: MCP_HUB, A_KEY; env = { MCP_HUB = "$MCP_HUB" }',
            ),
            ({"SHOP_REGION": "x", "OTHER": "y"}, "no", "of the shell: SHOP_REGION and 1 more; env = { SHOP_REGION ="),
            ({"ACME": "x"}, "no", 'of the shell: ACME; env = { NAME = "$NAME" } of the server hands one over'),
            ({"HTTPS_PROXY": "http://u:p@h.test"}, "no", "of the shell: HTTPS_PROXY; env"),
            (
                {},
                "set GITHUB_TOKEN",
                "its output names GITHUB_TOKEN, not set here: set it in the shell or in a .env; env = {",
            ),
            ({f"X{n}": "v" for n in range(7)}, "no", "of the shell: X0, X1, X2 and 4 more; env"),
            (
                {"A_KEY": "v"},
                "Cannot find package zod imported from /c/_npx/15b07286cbcc3329/node_modules/x/index.js",
                "an earlier download by npx was cut off: remove /c/_npx/15b07286cbcc3329, and start it again",
            ),
            ({f"X{n}_KEY": "v" for n in range(7)}, "no", "X0_KEY, X1_KEY, X2_KEY, X3_KEY, X4_KEY and 2 more"),
        ],
        2,
    ),
)
def test_a_failed_start_names_the_variables_that_the_server_may_lack(
    program: Program, variables: dict[str, str], says: str, expected: str
) -> None:
    program.write("shop.toml", suite(f'command = ["python", "-c", "import sys; sys.exit(\'{says}\')"]'))
    done = replace(program, variables=variables).run("tools", "shop.toml", "--trust")
    assert done.returncode == 3
    assert expected in done.stdout + done.stderr
    assert "u:p" not in done.stdout + done.stderr


def test_nothing_is_advised_where_nothing_can_be_missing(program: Program) -> None:
    program.write("shop.toml", suite('command = ["no-such-program-anywhere"]'))
    done = replace(program, variables={"A_KEY": "v"}).run("tools", "shop.toml", "--trust")
    assert "there is no program 'no-such-program-anywhere'" in done.stdout
    assert "did not get" not in done.stdout


def test_a_server_runs_in_its_folder_which_is_part_of_the_approval(program: Program) -> None:
    where = 'command = ["python", "-c", "import os, sys; sys.exit(os.getcwd())"]\ncwd = "inner/../inner"'
    program.write("shop.toml", suite(where))
    missing = program.run("tools", "shop.toml", "--trust")
    assert f"the folder {program.folder.resolve()}/inner does not exist" in missing.stdout
    (program.folder / "inner").mkdir()
    refused = program.run("tools", "shop.toml")
    assert f"(in {program.folder.resolve()}/inner)" in refused.stderr
    with program.ask("tools", "shop.toml") as asked:
        asked.wait_for("[yes/no]")
        asked.answer("yes")
        assert f"{program.folder.resolve()}/inner" in asked.end()
    assert program.run("tools", "shop.toml").returncode == 3
    # A link to another folder makes it another folder.
    (program.folder / "inner").rmdir()
    (program.folder / "inner").symlink_to("/")
    assert program.run("tools", "shop.toml").returncode == 2
    program.write("shop.toml", suite('url = "http://127.0.0.1:1/mcp"\ncwd = "."'))
    assert "`cwd` needs `command`" in program.run("validate", "shop.toml").stderr
