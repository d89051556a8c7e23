"""`workbench init` on real servers, over stdio and HTTP, and with configurations of clients."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.forking import forked_python
from tests.cli.program import Program
from tests.sampled_rows import first_of
from tests.samples import SAMPLES
from tests.schemas import schema_of
from tests.tools.conftest import SERVERS
from tests.tools.web import hosted
from workbench.cli.main import main
from workbench.evaluation.approval import ApprovalRequest, Needs
from workbench.evaluation.ci_jobs import CI_MIN_PASS_RATE
from workbench.suite.model import Suite
from workbench.suite.suite_file import load_suite

TIME = f"{sys.executable} -m mcp_server_time --local-timezone Europe/Oslo"
SECRET = "planted-7c1d90-secret"


def suite_of(file: Path) -> Suite:
    loaded = load_suite(file)
    assert loaded.problems == ()
    assert loaded.suite is not None
    return loaded.suite


def everything(folder: Path) -> str:
    return "".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file())


@pytest.mark.slow
def test_a_suite_of_a_command_has_a_case_for_each_tool_and_is_the_same_each_time(program: Program) -> None:
    done = program.run("init", "--command", TIME, "-o", "time.toml", "--by", "trajectory", "--trust")
    assert done.returncode == 0, done.stderr
    assert "time.toml: 3 cases for 2 tools of" in done.stdout
    file = program.folder / "time.toml"
    suite, text = suite_of(file), file.read_text()
    assert [case.name for case in suite.cases][:2] == ["Get current time", "Convert time"]
    assert [case.ordered[0].tool for case in suite.cases[:2]] == ["get_current_time", "convert_time"]  # type: ignore[union-attr]
    assert suite.cases[2].expect_no_calls
    assert (suite.grading.by, suite.grading.extra_calls) == ("trajectory", "allow_read_only")
    assert text.startswith("#:schema ./suite.schema.json\n")
    assert json.loads((program.folder / "suite.schema.json").read_text()) == schema_of("suite")
    page = (Path(__file__).parents[2] / "docs" / "first-steps.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r'^name = "time"\n.*?(# get_current_time.*?)^```', page, re.MULTILINE | re.DOTALL)
    written = text.replace(f"for {suite.name}", "for time")
    assert [part for part in shown.split("\n\n") if part.strip() not in written] == []
    assert shown.count("[[cases]]") == 2
    run = program.run("run", "time.toml", "--trust")
    assert "3 skipped" in run.stdout
    assert "no run that counts was graded: 3 skipped\n" in run.stdout
    assert run.returncode == 4
    again = program.run("init", "--command", TIME, "-o", "time.toml", "--by", "trajectory", "--trust")
    assert again.returncode == 2
    assert "time.toml exists: give --force" in again.stderr
    forced = program.run("init", "--command", TIME, "-o", "time.toml", "--by", "trajectory", "--trust", "--force")
    assert forced.returncode == 0, forced.stderr
    assert file.read_text() == text


def test_the_settings_can_be_used_once_their_marks_are_removed(program: Program) -> None:
    assert program.run("init", "--example").returncode == 0
    settings = program.folder / "workbench.toml"
    assert program.run("models").returncode == 0
    settings.write_text(re.sub(r"^# (?=[\[a-z_]+( =|\.))", "", settings.read_text(), flags=re.MULTILINE))
    listed = program.run("models")
    assert "local" in listed.stdout, listed.stderr
    assert (program.folder / "generic_tool.toml").exists()
    assert program.run("init", "--example", "slack").returncode == 0
    assert "local" in settings.read_text()


@pytest.mark.slow
def test_a_server_of_a_file_starts_after_an_answer_and_a_typed_one_without(program: Program) -> None:
    config = program.folder / "mcp.json"
    command, *arguments = TIME.split()
    config.write_text(json.dumps({"mcpServers": {"time": {"command": command, "args": arguments}}}))
    refused = program.run("init", "--from-config", str(config))
    assert refused.returncode == 2
    assert "run the command:" in refused.stderr
    assert list(program.folder.glob("*.toml")) == []
    typed = program.run("init", "--command", TIME, "-o", "time.toml")
    assert typed.returncode == 0 and "trusting" not in typed.stderr, typed.stderr
    file = program.folder / "time.toml"
    assert program.run("tools", "time.toml").returncode == 0, "what was typed is remembered for the suite"
    text = file.read_text()
    for other in (
        text.replace("Europe/Oslo", "Europe/Rome"),
        text.replace("command = [", 'env = { HOME = "$HOME" }\ncommand = ['),
        text.replace("command = [", 'cwd = ".."\ncommand = ['),
        text + '\n[[servers]]\nname = "other"\ncommand = ["touch", "started"]\n',
    ):
        assert other != text
        file.write_text(other)
        asked = program.run("tools", "time.toml")
        assert asked.returncode == 2 and "trusting time.toml allows" in asked.stderr, asked.stderr
    file.rename(program.folder / "copy.toml")
    (program.folder / "copy.toml").write_text(text)
    assert program.run("tools", "copy.toml").returncode == 2, "it holds for this file alone"
    assert not (program.folder / "started").exists()


def test_a_server_at_an_address_and_chosen_tools(program: Program) -> None:
    with hosted("sdk_workshop") as server:
        done = program.run("init", "--url", server.url, "--trust", "--tool", "add,echo", "--ci", "gitlab")
        assert done.returncode == 0, done.stderr
        unknown = program.run("init", "--url", server.url, "--trust", "--tool", "ad", "-o", "x.toml")
    assert "there is no tool 'ad'" in unknown.stderr
    suite = suite_of(program.folder / "127.0.0.1.toml")
    assert [call.tool for case in suite.cases for call in case.expected_calls()] == ["add", "echo"]
    (add, echo) = [call.args or {} for case in suite.cases for call in case.expected_calls()]
    assert {name: check.model_dump()["present"] for name, check in add.items()} == {"a": True, "b": True}
    assert echo.keys() == {"text"}
    job = yaml.safe_load((program.folder / ".gitlab-ci.yml").read_text())["suites"]["script"]
    run = "workbench run 127.0.0.1.toml --model offline --trust --report junit.xml"
    assert job[-1] == f"{run} || [ $? -eq 4 ]"
    assert f"\n# [gate]\n# min_pass_rate = {CI_MIN_PASS_RATE}\n" in (program.folder / "127.0.0.1.toml").read_text()
    twice = program.run("init", "--example", "--ci", "gitlab", "--force")
    assert "is never replaced" in twice.stderr


def test_a_module_is_named_from_the_folder_of_the_suite(program: Program) -> None:
    program.write("inner/shop.py", (SERVERS / "sdk_workshop.py").read_text())
    done = program.run("init", "--module", "inner/shop.py:server", "--trust", "--ci", "github")
    assert done.returncode == 0, done.stderr
    (server,) = suite_of(program.folder / "shop.toml").servers
    assert (server.module, server.object) == ("inner.shop", "server")
    assert "for the job: set the repository's variable WORKBENCH" in done.stdout
    unknown = program.run("init", "--example", "--ci", "gitlab", "--ci-model", "x")
    assert (unknown.returncode, "there is no model 'x'" in unknown.stderr) == (2, True)
    program.write("other/x.txt", "")
    elsewhere = program.run("init", "--module", "inner/shop.py:server", "-o", "other/a.toml")
    assert "is not below" in elsewhere.stderr


def test_a_configuration_gives_servers_without_its_secrets(program: Program) -> None:
    program_of_shop, *words = forked_python(str(SERVERS / "sdk_workshop.py"))
    command, env = {"command": program_of_shop, "args": words}, {"SHOP_TOKEN": SECRET}
    with hosted("sdk_workshop") as web:
        servers = {
            "shop": {**command, "env": env},
            "web": {"type": "http", "url": web.url, "headers": {"Authorization": f"Bearer {SECRET}2"}},
        }
        config = program.write("../client.json", json.dumps({"mcpServers": servers}))
        done = program.run("init", "--from-config", str(config), "--trust")
    assert done.returncode == 0, done.stderr
    assert "SHOP_TOKEN, WEB_TOKEN" in done.stdout
    suite = suite_of(program.folder / "servers.toml")
    assert [server.prefix for server in suite.servers] == ["shop_", "web_"]
    assert suite.servers[0].env == {"SHOP_TOKEN": "$SHOP_TOKEN"}
    assert suite.servers[1].headers == {"Authorization": "Bearer $WEB_TOKEN"}
    assert {case.tags for case in suite.cases} == {("shop",), ("web",)}
    assert SECRET not in everything(program.folder) + done.stdout + done.stderr


def test_what_cannot_be_done_is_said_and_nothing_written(program: Program) -> None:
    program.write("a.json", '{"mcpServers": {"shop": {"command": "no-such-program-anywhere"}}}')
    for words, code, said in (
        (["--from-config", "a.json", "--trust"], 3, "nothing was written"),
        (["--from-config", "none.json"], 2, "none.json cannot be read"),
        (["--from-config", "a.json", "--server", "sop"], 2, "there is no server 'sop'"),
        (["--command", "'x"], 2, "the command cannot be split into words"),
        (["--url", "ftp://x"], 2, "must begin with http"),
        (["--module", "gone.py:mcp"], 2, "there is no file"),
        (["--example", "slak"], 2, "there is no sample 'slak'"),
        (["--tool", "a"], 2, "--tool and --by need a server"),
        (["--env", "A"], 2, "--env and --cwd need a server that a command starts"),
        (["--env", "A", "http://x.test/mcp"], 2, "--env and --cwd need a server that a command starts"),
        (["--cwd", "nowhere", "npx", "x"], 2, "--cwd: there is no folder"),
        (["--env", "A B", "npx", "x"], 2, "write a variable as NAME=value"),
        (["--url", "http://x.test/mcp", "npx", "x"], 2, "npx begins the command of a server"),
        (["shop.toml"], 2, "shop.toml is not a server: give the suite to write with -o shop.toml"),
        (["http://x.test/mcp", "--tool", "a"], 2, "http://x.test/mcp is an address, which must be the last word"),
        (["gone.py:mcp"], 2, "there is no file"),
        (["-y", "npx", "x"], 2, "--yes apply to drafts"),
        ([], 2, "workbench init --example "),
        (["-o", "x.toml", "--ci", "github", "--force"], 2, "nothing was written: name a server, or give --example"),
        (["--example", "-o", "x.json"], 2, "a suite is a TOML file"),
        (["--example", "-o", "none/x.toml"], 2, "there is no folder"),
    ):
        done = program.run("init", *words)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert list(program.folder.rglob("*.toml")) == []
    assert not (program.folder / ".github").exists()


def test_what_is_written_is_validated_and_run_together(program: Program) -> None:
    assert program.run("init", "--example").returncode == 0
    written = sorted(file.name for file in program.folder.glob("*.toml"))
    assert written == ["generic_tool.toml", "workbench.toml"]
    for words, said in (
        (["validate", *written], "1 valid suite (1 case)"),
        (["validate", "workbench.toml"], "valid settings"),
        (["run", "."], "1 run: 1 passed"),
        (["run", *written], "1 run: 1 passed"),
        (["tools", *written], "my_tool"),
        (["validate", "."], "1 valid suite (1 case)"),
    ):
        done = program.run(*words)
        assert (done.returncode, done.stderr, said in done.stdout) == (0, "", True), done.stderr
    alone = program.run("run", "workbench.toml")
    assert (alone.returncode, "holds settings: name suites" in alone.stderr) == (2, True), alone.stderr
    program.write("workbench.toml", 'jugde = "local"\n')
    for words in (["validate", *written], ["validate", "workbench.toml"]):
        wrong = program.run(*words)
        assert wrong.returncode == 2
        assert "workbench.toml:1: jugde is not a setting: did you mean 'judge'?" in wrong.stderr


@pytest.mark.parametrize("name", first_of([file.stem for file in sorted(SAMPLES.glob("*.toml"))], 3))
def test_a_copied_sample_loads_with_the_code_that_it_names(program: Program, name: str) -> None:
    done = program.run("init", "--example", name)
    assert done.returncode == 0, done.stderr
    assert load_suite(program.folder / f"{name}.toml").errors == ()
    text = (program.folder / f"{name}.toml").read_text()
    named = set(re.findall(r'"(?:python", ")?(\w+)(?:\.py"|:\w+")', text))
    assert named <= {file.stem for file in program.folder.glob("*.py")}


def test_a_server_that_does_not_start_says_why_in_its_own_words(program: Program) -> None:
    done = program.run("init", "--command", f"{sys.executable} -m nonexistent_module", "--trust")
    assert done.returncode == 3
    assert done.stderr.endswith("--env NAME, before the command, passes a variable of your shell to it\n")
    assert "No module named nonexistent_module" in done.stderr


@pytest.mark.parametrize(
    ("words", "command", "file"),
    [
        (["npx", "-y", "x", "--flag"], "npx -y x --flag", "x.toml"),
        (["-f", "npx", "-y", "x", "-o", "--force"], "npx -y x -o --force", "x.toml"),
        (["-fo", "a.toml", "npx", "x"], "npx x", "a.toml"),
        (["-oa.toml", "--tool=a", "npx", "x", "--", "y"], "npx x -- y", "a.toml"),
        (["--by", "critics", "--", "npx", "-y", "x"], "npx -y x", "x.toml"),
        (["--tool", "a,b", "--tool", "c", "LEVEL=debug", "npx", "x"], "LEVEL=debug npx x", "x.toml"),
        (["--env", "B", "--env", "A=1", "npx", "x"], "A=1 B='$B' npx x", "x.toml"),
        (
            ["npx", "x", "--api-key", "a"],
            "X_API_KEY='$X_API_KEY' sh -c 'exec npx x --api-key \"$X_API_KEY\"'",
            "x.toml",
        ),
        (["--command", "npx -y x"], "npx -y x", "x.toml"),
    ],
)
def test_the_first_bare_word_begins_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], command: str, file: str
) -> None:
    asked: list[ApprovalRequest] = []

    def refused(needs: Needs, program: object, **how: bool) -> None:
        assert all(request.typed is not None and request.typed.others.nothing for request in needs.requests)
        asked.extend(needs.requests)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.cli.approval.approved", refused)
    assert main(["init", *words]) == 2
    (request,) = asked
    assert request.file.path == Path(file)
    assert [str(need) for need in request.needs.commands] == [command]


def test_a_job_whose_folder_cannot_be_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".github").touch()
    assert main(["init", "--example", "--ci", "github"]) == 2
    assert "suites.yml cannot be created: Not a directory" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == [".github"]


def test_a_key_is_refused_only_before_the_command(program: Program) -> None:
    refused = program.run("init", "--api-key", "npx", "x")
    assert "a key is never given on the command line" in refused.stderr


def test_a_command_with_variables_a_folder_and_chosen_tools(program: Program) -> None:
    (program.folder / "inner").mkdir()
    server = [sys.executable, str(SERVERS / "workshop.py")]
    given = [
        "--env",
        f"SHOP_TOKEN={SECRET}",
        "--env",
        "LEVEL=debug",
        "--cwd",
        "inner",
        "--tool",
        "add",
        "--tool",
        "echo",
    ]
    (program.folder / "suites").mkdir()
    done = program.run("init", "--trust", *given, "-o", "suites/a.toml", *server)
    assert done.returncode == 0, done.stderr
    assert "before it runs, set these variables in the environment or in a .env beside it: SHOP_TOKEN" in done.stdout
    suite = suite_of(program.folder / "suites" / "a.toml")
    (table,) = suite.servers
    assert (table.cwd, table.env) == ("../inner", {"SHOP_TOKEN": "$SHOP_TOKEN", "LEVEL": "debug"})
    assert table.command == tuple(server)
    assert [call.tool for case in suite.cases for call in case.expected_calls()] == ["add", "echo"]
    assert SECRET not in everything(program.folder) + done.stdout + done.stderr
