"""The recipes of docs/ci.md, the action, the hooks and the workflow: their commands are run or compared here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.cli.forking import forked_command
from tests.cli.suites import WEATHER, WRONG
from tests.sampled_rows import first_of
from workbench.evaluation.ci_jobs import CI_FILES, VARIABLE, CiSystem

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


def example(heading: str, language: str = "yaml") -> str:
    """The code below a heading of the page."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


class Machine:
    """A machine of a CI system, in a folder with suites, on which `workbench` is installed."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder / "checkout"
        (self.folder / "suites").mkdir(parents=True)
        (self.folder / "suites" / "weather.toml").write_text(suite, encoding="utf-8")
        self.temp = folder / "temp"
        programs = self.temp / "workbench" / "bin"
        programs.mkdir(parents=True)
        program = programs / "workbench"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(forked_command())} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        homes = {name: str(folder / name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = homes | {"PATH": path, "RUNNER_TEMP": str(self.temp), "PYTHONPATH": str(ROOT)}

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script as GitHub runs a step of `shell: bash`."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return loaded


def inputs_of(values: dict[str, str]) -> dict[str, str]:
    return {name: values.get(name, given["default"]) for name, given in action()["inputs"].items()}


def filled(text: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)


def test_the_action_runs_suites_and_writes_reports_and_summary(tmp_path: Path) -> None:
    machine = Machine(tmp_path, WEATHER + WRONG)
    (job,) = yaml.safe_load(example("GitHub"))["jobs"].values()
    _, checkout, action_step = job["steps"]
    assert action_step["uses"] == f"./{checkout['with']['path']}"
    given = inputs_of(action_step["with"])
    step = next(step for step in action()["runs"]["steps"] if step.get("name") == "Run suites")
    variables = {name: filled(value, given) for name, value in step["env"].items()}
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = machine.run(step["run"], **variables, **github)
    assert done.returncode == 1, done.stderr
    reports = machine.folder / given["reports"]
    assert {each.name for each in reports.iterdir()} == {"junit.xml", "report.html", "report.json"}
    assert ElementTree.parse(reports / "junit.xml").getroot().get("failures") == "1"
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("## ✗ Not everything passed")
    assert re.search(r"^::error file=\S*suites/weather\.toml,line=\d+", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    "evil", first_of(["$(touch pwned)", "; touch pwned", "`touch pwned`", "' && touch pwned '", "x\ny $(id)"], 2)
)
def test_no_input_of_the_action_is_part_of_its_script(tmp_path: Path, evil: str) -> None:
    machine = Machine(tmp_path, WEATHER)
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    step = next(step for step in action()["runs"]["steps"] if step.get("name") == "Run suites")
    assert machine.run(step["run"], PATHS=evil, ARGUMENTS=evil, REPORTS="reports").returncode == 2
    assert not list(tmp_path.rglob("pwned"))


def test_the_inputs_of_the_action_are_those_of_the_page() -> None:
    section = PAGE.partition("## GitHub\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE) == list(action()["inputs"])
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(action()["inputs"])


def test_what_gitlab_runs_writes_what_it_takes(tmp_path: Path) -> None:
    machine = Machine(tmp_path, WEATHER)
    (job,) = yaml.safe_load(example("GitLab")).values()
    install, *lines = job["script"]
    assert install == f'pip install "${VARIABLE}"'
    for line in lines:
        done = machine.run(line)
        assert done.returncode == 0, done.stderr
    artifacts = job["artifacts"]
    for file in (*artifacts["paths"], *artifacts["reports"].values()):
        assert (machine.folder / file).stat().st_size


SERVER_FILE = """\
from mcp.server.mcpserver import MCPServer

mcp = MCPServer("lights")


@mcp.tool()
def set_light(room: str, level: int = 50) -> str:
    \"\"\"Set the light of a room.\"\"\"
    return "done"
"""
FIRST_REQUEST = """
[[cases]]
name = "Kitchen"
user = "Set the light of the kitchen."
ordered = [{ tool = "CALL" }]
"""


def commands_of(machine: Machine, system: CiSystem) -> list[str]:
    """The commands of the job that `workbench init` wrote."""
    written = yaml.safe_load((machine.folder / CI_FILES[system]).read_text())
    if system == "gitlab":
        return [*written["suites"]["script"]]
    return [step["run"] for step in written["jobs"]["suites"]["steps"] if "run" in step]


@pytest.mark.parametrize("system", ["github", "gitlab"])
def test_the_job_of_init_passes_in_a_new_repository_and_decides_with_the_first_request(
    tmp_path: Path, system: CiSystem
) -> None:
    machine = Machine(tmp_path, WEATHER)
    (machine.folder / ".git").mkdir()
    (machine.folder / "lights.py").write_text(SERVER_FILE, encoding="utf-8")
    (machine.folder / "requirements.txt").write_text("mcp\n", encoding="utf-8")
    made = machine.run(f"workbench init --ci {system} --trust lights.py")
    assert made.returncode == 0, made.stderr
    *install, run = commands_of(machine, system)
    assert install == [f'pip install "${VARIABLE}"', "pip install -r requirements.txt"]
    assert machine.run(run).returncode == 0
    suite = machine.folder / "lights.toml"
    text = suite.read_text(encoding="utf-8")
    for call, code in (("set_light", 0), ("another_tool", 1)):
        suite.write_text(text + FIRST_REQUEST.replace("CALL", call), encoding="utf-8")
        assert machine.run(run).returncode == code


@pytest.mark.slow
def test_the_job_of_init_installs_and_passes_on_a_new_machine(tmp_path: Path) -> None:
    machine = Machine(tmp_path, WEATHER)
    (machine.folder / ".git").mkdir()
    assert machine.run("workbench init --ci github --example").returncode == 0
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "new"], check=True)
    path = f"{tmp_path / 'new' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for command in commands_of(machine, "github"):
        done = machine.run(command, PATH=path, PYTHONPATH="", **{VARIABLE: str(ROOT)})
        assert done.returncode == 0, done.stderr
    assert (machine.folder / "report.html").stat().st_size


def test_failed_cases_do_not_fail_the_step_of_jenkins_but_errors_do(tmp_path: Path) -> None:
    found = re.search(r"^sh '(.*)'", example("Jenkins", "groovy"), re.MULTILINE)
    assert found is not None
    assert Machine(tmp_path / "a", WEATHER + WRONG).run(found[1]).returncode == 0
    assert Machine(tmp_path / "b", "format = 2").run(found[1]).returncode == 1


def test_the_hook_refuses_a_suite_with_errors_and_leaves_other_files_alone(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    ((shown,),) = (repo["hooks"] for repo in yaml.safe_load(example("pre-commit"))["repos"])
    same = ("id", "entry", "args", "types", "pass_filenames")
    assert [shown[key] for key in same] == [hook[key] for key in same]
    command = " ".join([hook["entry"], *hook["args"]])
    machine = Machine(tmp_path, WEATHER)
    (machine.folder / "pyproject.toml").write_text('[project]\nname = "other"\n', encoding="utf-8")
    assert machine.run(command).returncode == 0
    (machine.folder / "suites" / "broken.toml").write_text('format = 1\nname = "x"\ncasez = []\n', encoding="utf-8")
    done = machine.run(command)
    assert done.returncode == 2
    assert "suites/broken.toml:3: error" in done.stderr


def loaded(file: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    return content


def test_the_workflow_tests_by_the_command_of_the_readme_on_every_python_that_is_supported() -> None:
    tests = loaded(".github/workflows/tests.yml")["jobs"]["tests"]
    (script,) = [step["run"] for step in tests["steps"] if step.get("name") == "Test"]
    shown = script.replace('bash -euo pipefail -c "$command"', 'printf "%s" "$command"')
    assert shown != script
    printed = subprocess.run(["bash", "-euo", "pipefail", "-c", shown], cwd=ROOT, capture_output=True, check=True)
    command = printed.stdout.decode()
    assert command.endswith("/bin/pytest")
    assert f"<!-- test command -->\n```sh\n{command}\n```" in (ROOT / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classifiers = [name.rpartition(" ")[2] for name in project["classifiers"] if ":: Python :: 3." in name]
    assert tests["strategy"]["matrix"]["python"] == classifiers


def test_the_workflow_and_the_hooks_check_what_is_checked_before_a_merge() -> None:
    required = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    checks = [step["run"] for step in loaded(".github/workflows/tests.yml")["jobs"]["lint"]["steps"][3:]]
    (local,) = loaded(".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"] for hook in local["hooks"]]
    assert set(hooks) <= set(checks)
    assert len(checks) == 5
    for check in checks:
        assert f"\nclean {check}\n" in f"{required}\n"


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_a_baseline_lets_through_what_failed_before_and_nothing_that_broke(tmp_path: Path) -> None:
    machine = Machine(tmp_path, WEATHER + WRONG)
    (machine.folder / ".git").mkdir()  # a checkout is a repository, whose history is its own
    section = PAGE.partition("## Baselines\n")[2]
    change, main = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    for _ in range(2):  # the second time there is a batch of that name
        done = machine.run(main)
        assert done.returncode == 0, done.stderr
    assert machine.run(change).returncode == 0
    suite = machine.folder / "suites" / "weather.toml"
    suite.write_text(
        (WEATHER + WRONG).replace('args = { city = "Oslo" }', 'args = { city = "Rome" }'), encoding="utf-8"
    )
    broken = machine.run(change)
    assert broken.returncode == 1
    assert "broke" in broken.stdout
