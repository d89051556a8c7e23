"""The CI job of a suite: its installation, its variables, and the source of this program."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from workbench.evaluation.ci_jobs import CiJob, job_of, local_dependencies, pip_requirement
from workbench.suite.render import Table
from workbench.version import __version__

COMMIT = "4f1c0de"


@pytest.mark.parametrize(
    ("direct_url", "remote", "expected"),
    [
        (None, None, f"toolcall-workbench=={__version__}"),
        (
            {"url": "https://me:secret@git.test/o/w.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            None,
            f"toolcall-workbench @ git+https://git.test/o/w.git@{COMMIT}",
        ),
        ({"url": "file:///x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, None, None),
        ({"url": "https://files.test/w.zip", "archive_info": {}}, None, None),
        ({"dir_info": {}}, "git@git.test:o/w.git", "toolcall-workbench @ git+https://git.test/o/w.git"),
        ({"dir_info": {}}, "https://token@git.test/o/w", "toolcall-workbench @ git+https://git.test/o/w"),
        ({"dir_info": {"editable": True}}, "../w", None),
        ({"dir_info": {}}, None, None),
    ],
)
def test_a_job_installs_from_where_others_reach_without_any_password(
    direct_url: dict[str, object] | None,
    remote: str | None,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site, clone = tmp_path / "site", tmp_path / "a clone"
    info = site / f"toolcall_workbench-{__version__}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toolcall-workbench\nVersion: {__version__}\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps({"url": clone.as_uri(), **direct_url}))
    if remote is not None:
        (clone / ".git").mkdir(parents=True)
        (clone / ".git" / "config").write_text(f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {remote}\n')
    (found,) = metadata.distributions(path=[str(site)])
    monkeypatch.setattr(metadata, "distribution", lambda name: {"toolcall-workbench": found}[name])
    assert pip_requirement() == expected


@pytest.mark.parametrize(
    ("server", "setup", "installs"),
    [
        ({"command": ["npx", "-y", "x"]}, ["actions/setup-node@v4"], []),
        ({"command": ["uvx", "x"]}, [], ["pip install uv"]),
        ({"command": ["python3", "server.py"]}, [], ["pip install -r requirements.txt", "pip install ."]),
        ({"module": "server"}, [], ["pip install -r requirements.txt", "pip install ."]),
        ({"url": "https://x.test/mcp"}, [], []),
    ],
)
def test_a_job_installs_what_its_servers_need(
    server: Table, setup: list[str], installs: list[str], tmp_path: Path
) -> None:
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).touch()
    job = job_of("a: b.toml", tmp_path, [server], "openai:m", ["KEY", "KEY"], all_skipped=False)
    github = yaml.safe_load(job.text("github", "w @ git+https://x.test/w"))
    steps = github["jobs"]["suites"]["steps"]
    assert github["env"] == {"WORKBENCH": "w @ git+https://x.test/w"}
    assert [step["uses"] for step in steps if "uses" in step][2:-1] == setup
    *installed, run = [step for step in steps if "run" in step]
    assert [step["run"] for step in installed] == ['pip install "$WORKBENCH"', *installs]
    assert run == {
        "run": "workbench run 'a: b.toml' --model openai:m --trust --report report.html",
        "env": {"KEY": "${{ secrets.KEY }}"},
    }
    text = job.text("gitlab", None)
    script = yaml.safe_load(text)["suites"]["script"]
    assert [line for line in script if line.startswith("pip")] == ['pip install "$WORKBENCH"', *installs]
    assert text.startswith("# Variables of the project, in its settings of CI/CD: WORKBENCH, KEY\n")


def test_what_only_this_machine_has_is_named() -> None:
    servers: list[Table] = [
        {"command": ["/bin/server"], "cwd": "/data"},
        {"url": "http://localhost:8000/mcp"},
        {"url": "https://x.test/mcp"},
        {"command": ["npx"], "cwd": "sub"},
    ]
    found = ["/bin/server", "/data", "http://localhost:8000/mcp", "http://127.0.0.1:1/v1"]
    assert [*local_dependencies(servers, "http://127.0.0.1:1/v1")] == found
    assert "no case has a request yet" not in CiJob("x.toml", "offline").text("github", None)
