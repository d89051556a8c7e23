"""Finds the data that is installed with the program: the themes and the sample suites."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

BundledName = Literal["themes", "sample_suites"]


class MissingResourceError(RuntimeError):
    """The installation lacks its data files."""


def bundled(name: BundledName) -> Path:
    """Returns the folder of bundled data, from a wheel, an editable install or a checkout. Raises MissingResourceError
    when it is in none of these places."""
    package = files("workbench")
    installed = package / "_bundled" / name
    if installed.is_dir():
        with as_file(installed) as path:
            return path
    with as_file(package) as path:
        checkout = path.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    raise MissingResourceError(f"this installation has no {name!r} folder: reinstall toolcall-workbench")
