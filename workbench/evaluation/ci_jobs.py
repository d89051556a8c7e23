"""The CI job that `workbench init --ci` writes, and the packages and programs that its servers need."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from workbench.config.models import is_loopback
from workbench.dataclasses import dataclass
from workbench.suite.render import Table
from workbench.version import __version__

CiSystem = Literal["github", "gitlab"]

CI_FILES: Mapping[CiSystem, str] = {"github": ".github/workflows/suites.yml", "gitlab": ".gitlab-ci.yml"}
"""The path of each CI system's job file in a repository."""

DISTRIBUTION = "toolcall-workbench"
VARIABLE = "WORKBENCH"
"""The CI variable with the requirement that pip installs Workbench from."""

CI_MIN_PASS_RATE = 0.9
"""The pass rate that a suite must reach in CI, from 0 to 1. It is below 1 because models vary."""

_NODE = frozenset({"npx", "npm", "node", "pnpm", "yarn"})
_UV = frozenset({"uvx", "uv"})
_ALLOWS = "# --trust lets the suite start its servers and import its code: review their changes."
_BASELINE = "# offline is a baseline without a key. Name another with --model, and its key below env."
_SKIPPED = "# Exit code 4: no case has a request yet. Remove `|| …` with the first one."


@dataclass(frozen=True)
class CiJob:
    """A CI job that installs Workbench and runs a suite.

    `suite` is the path from the root of the repository. `model` is a name for `--model`. The job receives `variables`
    from the repository's secrets. `programs` holds the programs that start the servers, such as `npx`. `installs` holds
    what pip must install for servers written in Python. `all_skipped` means that no case has a request yet. The job
    then passes although nothing ran."""

    suite: str
    model: str
    variables: Sequence[str] = ()
    programs: Sequence[str] = ()
    installs: Sequence[str] = ()
    all_skipped: bool = False

    def text(self, system: CiSystem, requirement: str | None) -> str:
        """Return the content of the job's file.

        `requirement` is what pip installs. If it is `None`, the job reads it from the variable `$WORKBENCH`."""
        if system == "gitlab":
            return "".join(f"{line}\n" for line in self._gitlab(requirement))
        return "".join(f"{line}\n" for line in self._github(requirement))

    def _command(self, report: str) -> str:
        command = shlex.join(["workbench", "run", self.suite, "--model", self.model, "--trust", "--report", report])
        return f"{command} || [ $? -eq 4 ]" if self.all_skipped else command

    def _github(self, requirement: str | None) -> Iterator[str]:
        yield from ("name: suites", "on: pull_request", "permissions: { contents: read }")
        yield "env:"
        yield f"  {VARIABLE}: {'${{ vars.WORKBENCH }}' if requirement is None else _yaml_scalar(requirement)}"
        yield from ("jobs:", "  suites:", "    runs-on: ubuntu-latest", "    steps:")
        yield "      - uses: actions/checkout@v4"
        yield "      - uses: actions/setup-python@v5"
        yield '        with: { python-version: "3.13" }'
        if not _NODE.isdisjoint(self.programs):
            yield "      - uses: actions/setup-node@v4"
            yield '        with: { node-version: "22" }'
        for line in self._installations():
            yield f"      - run: {_yaml_scalar(line)}"
        for line in self._comments():
            yield f"      {line}"
        yield f"      - run: {_yaml_scalar(self._command('report.html'))}"
        if self.variables:
            yield "        env:"
        for name in self.variables:
            yield f"          {name}: ${{{{ secrets.{name} }}}}"
        yield "      - uses: actions/upload-artifact@v4"
        yield "        if: always()"
        yield "        with: { name: report, path: report.html, if-no-files-found: ignore }"

    def _gitlab(self, requirement: str | None) -> Iterator[str]:
        if requirement is not None:
            yield from ("variables:", f"  {VARIABLE}: {_yaml_scalar(requirement)}")
        # GitLab passes a project's masked variables to its jobs, so the file does not name them.
        missing = [*self.variables] if requirement is not None else [VARIABLE, *self.variables]
        if missing:
            yield f"# Variables of the project, in its settings of CI/CD: {', '.join(missing)}"
        yield from ("suites:", "  image: python:3.13", "  script:")
        if not _NODE.isdisjoint(self.programs):
            yield "    - apt-get update && apt-get install -y nodejs npm"
        for line in self._installations():
            yield f"    - {_yaml_scalar(line)}"
        for line in self._comments():
            yield f"    {line}"
        yield f"    - {_yaml_scalar(self._command('junit.xml'))}"
        yield from ("  artifacts:", "    when: always", "    reports:", "      junit: junit.xml")

    def _comments(self) -> Iterator[str]:
        yield _ALLOWS
        if self.model == "offline":
            yield _BASELINE
        if self.all_skipped:
            yield _SKIPPED

    def _installations(self) -> Iterator[str]:
        yield f'pip install "${VARIABLE}"'
        if not _UV.isdisjoint(self.programs):
            yield "pip install uv"
        for each in self.installs:
            yield f"pip install {each}"


def job_of(
    suite: str, root: Path, servers: Iterable[Table], model: str, variables: Iterable[str], *, all_skipped: bool
) -> CiJob:
    """Return the CI job of a suite in the repository at `root`.

    `servers` are the `[[servers]]` tables of the suite."""
    programs: list[str] = []
    in_python = False
    for server in servers:
        match server.get("command"):
            case [str() as program, *_]:
                programs.append(Path(program).name)
        in_python = in_python or "module" in server
    installs = []
    # A server that is imported or started by Python needs its packages in the same environment as Workbench.
    if in_python or any(name.startswith("python") for name in programs):
        if (root / "requirements.txt").is_file():
            installs.append("-r requirements.txt")
        if (root / "pyproject.toml").is_file():
            installs.append(".")
    return CiJob(suite, model, tuple(dict.fromkeys(variables)), tuple(programs), tuple(installs), all_skipped)


def local_dependencies(servers: Iterable[Table], model_url: str) -> Iterator[str]:
    """Yield the programs, folders and addresses that a CI job cannot reach, because they exist only on this machine.

    The addresses of the servers and of the model are examined."""
    for server in servers:
        match server:
            case {"command": [str() as program, *_]} if Path(program).is_absolute():
                yield program
            case {"url": str() as url} if is_loopback(url):
                yield url
        cwd = server.get("cwd")
        if isinstance(cwd, str) and Path(cwd).is_absolute():
            yield cwd
    if model_url and is_loopback(model_url):
        yield model_url


def pip_requirement() -> str | None:
    """Return a requirement from which pip can install this program: its repository, or its name and version.

    Returns `None` if the program is installed from a folder whose repository has no public address."""
    try:
        origin = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    # Only an installation from an index has no `direct_url.json` (PEP 610).
    if origin is None:
        return f"{DISTRIBUTION}=={__version__}"
    described: dict[str, Any] = json.loads(origin)
    url = str(described.get("url", ""))
    if "vcs_info" in described:
        public = _public(url)
        commit = described["vcs_info"].get("commit_id")
        return None if public is None else f"{DISTRIBUTION} @ git+{public}@{commit}"
    if "dir_info" in described:
        public = _remote_of(Path(unquote(urlsplit(url).path)))
        return None if public is None else f"{DISTRIBUTION} @ git+{public}"
    return None


def _remote_of(clone: Path) -> str | None:
    config = configparser.ConfigParser(strict=False, allow_no_value=True, interpolation=None)
    try:
        config.read(clone / ".git" / "config", encoding="utf-8")
        return _public(config.get('remote "origin"', "url"))
    except (configparser.Error, OSError, UnicodeDecodeError):
        return None


def _public(url: str) -> str | None:
    if match := re.fullmatch(r"(?:ssh://)?git@([\w.-]+)[:/](.+)", url):
        return f"https://{match[1]}/{match[2]}"
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        return None
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _yaml_scalar(text: str) -> str:
    if re.fullmatch(r"[A-Za-z][\w ./=-]*", text):
        return text
    return json.dumps(text)
