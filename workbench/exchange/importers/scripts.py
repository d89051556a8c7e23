"""Runs Python files that define their tests in code: Arcade evals, Toolvaluator, the five-dimension evaluator.

A file runs only with the user's consent, in the user's Python interpreter, in which the file's packages are installed.
`script_runner` or `dimensions_runner` starts the file there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from workbench.exchange.importers.arcade import suite_documents
from workbench.exchange.importers.source_files import Node, RefusedError, Source, bare_values, source_of
from workbench.limits import MAX_FILE_BYTES
from workbench.numerals import seconds_text
from workbench.trajectory.events import JsonValue

TIME_LIMIT_S = 120.0
FORMS_OF_SCRIPTS = ("arcade", "toolvaluator", "dimensions")
_RUNNER = Path(__file__).with_name("script_runner.py")
_DIMENSIONS_RUNNER = Path(__file__).with_name("dimensions_runner.py")
_TEST_CASE = re.compile(rb"\bTestCase\s*\(")
_OTHER_PACKAGES = re.compile(rb"\b(?:arcade_evals|toolvaluator|dspy)\b")
_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TEMP", "SYSTEMROOT", "VIRTUAL_ENV", "PYTHONPATH")
_NOT_SEARCHED = ("node_modules", "__pycache__", "venv", "env", "build", "dist", "site-packages")


def scripts_of(file: Path, form: str | None) -> tuple[Path, ...]:
    """Return the files to run for an import: the file itself, or all `eval_*.py` of a folder in order.

    As in `arcade evals`, subfolders are searched too, except hidden folders, environments and build output. The result
    is empty if `form` is a format whose files are only read."""
    if form is not None and form not in FORMS_OF_SCRIPTS:
        return ()
    if file.is_dir():
        return tuple(sorted(_eval_files(file)))
    if file.suffix.lower() == ".py":
        return (file,)
    return ()


def _eval_files(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NOT_SEARCHED]
        for name in files:
            if name.startswith("eval_") and name.endswith(".py"):
                yield Path(path, name)


def run_script(
    file: Path,
    code: bytes,
    python: str,
    environment: Mapping[str, str],
    time_limit_s: float = TIME_LIMIT_S,
    *,
    passed: Sequence[str] = (),
) -> Source:
    """Run the code of a file in the current folder, and return what it defines: suites, datasets or tests.

    The code gets only the environment variables that any program needs, and those in `passed`. Raises RefusedError if
    the code fails or takes too long, or if a variable in `passed` is not set."""
    kept = {name: environment[name] for name in _PASSED_ON if name in environment}
    for name in passed:
        if name not in environment:
            raise RefusedError(f"--env {name}: this variable is not set")
        kept[name] = environment[name]
    if os.sep in python:
        python = str(Path(python).absolute())
    try:
        process = subprocess.Popen(
            [python, str(_runner_of(code)), str(file), *passed],
            env=kept | {"PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # `_stop` ends this process group, with every process that the code started
        )
    except (OSError, ValueError) as error:
        raise RefusedError(f"{python} cannot be started: {getattr(error, 'strerror', None) or error}") from error
    try:
        output, errors = process.communicate(code, time_limit_s)
    except subprocess.TimeoutExpired as error:
        raise RefusedError(f"{file} was stopped: it ran for more than {seconds_text(time_limit_s)}") from error
    finally:
        _stop(process)
    if process.returncode != 0:
        lines = errors.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        why = lines[-1]
        more = ""
        if "ModuleNotFoundError" in why:
            more = "; name the Python that has the file's packages with --python"
        raise RefusedError(f"{file} cannot be run by {python}: {why}{more}")
    if len(output) > MAX_FILE_BYTES:
        raise RefusedError(f"prints its suites, but the output {MAX_FILE_BYTES.reached()}", file=file)
    return source_of(file.with_suffix(".json"), output)


def _runner_of(code: bytes) -> Path:
    """Return the path of the runner for a script.

    A script of the evaluator with five dimensions imports no package. Such a script is recognized by its use of a class
    `TestCase`."""
    if _TEST_CASE.search(code) and not _OTHER_PACKAGES.search(code):
        return _DIMENSIONS_RUNNER
    return _RUNNER


def gathered_sources(
    files: Mapping[Path, Source | RefusedError], *, python: str | None = None, cwd: str = ""
) -> list[Source]:
    """Return a source for each suite file to write, from the output of all executed files.

    `files` has the output of each Python file, or the error that it raised. `python` is the interpreter that ran the
    files. `cwd` is the folder in which they ran, relative to the suites' folder. Raises RefusedError if no file could
    be run."""
    read = {file: source for file, source in files.items() if isinstance(source, Source)}
    problems: list[JsonValue] = []
    for file, error in files.items():
        if isinstance(error, RefusedError):
            problems.append({"name": str(file), "error": error.why})
    if not read:
        reasons = [error.why for error in files.values() if isinstance(error, RefusedError)]
        raise RefusedError("; ".join(reasons))
    suites: list[JsonValue] = []
    documents: list[tuple[Path, dict[str, JsonValue]]] = []
    for file, source in read.items():
        root = source.root
        for problem in root.items_of("problems"):
            problems.append({"name": problem.text_of("name"), "error": problem.text_of("error")})
        for system in ("toolvaluator", "five_dimensions"):
            if root.has(system):
                documents.append((file, {system: root.value_of(system)}))
        suites += bare_values(root.items_of("arcade_suites"))
    if suites or not documents:
        first = next(iter(read))
        for document in suite_documents({"arcade_suites": suites}):
            held = Node(document).items_of("arcade_suites")
            name = held[0].text_of("name") if len(held) == 1 else first.stem
            documents.append((first.with_name(name.replace("/", " ") or first.stem), document))
    found = []
    for number, (path, document) in enumerate(documents):
        document |= {"cwd": cwd, "problems": [] if number else [*problems]}
        if python is not None:
            document["python"] = python
        found.append(Source(path, "json", Node(document)))
    return found


def _stop(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
