"""Themes and sample suites are found from a checkout and an editable install, and from a wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from workbench.config.folders import bundled

ROOT = Path(__file__).parents[2]
FIND = "from workbench.config.folders import bundled; print(bundled('themes')); print(bundled('sample_suites'))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_checkout_is_found_from_the_editable_install() -> None:
    assert bundled("themes") == ROOT / "themes"
    assert bundled("sample_suites") == ROOT / "sample_suites"


@pytest.mark.slow
def test_the_data_travels_in_the_wheel_and_is_found_there(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", FIND], cwd=tmp_path, env={"PYTHONPATH": "."}, check=True, capture_output=True, text=True
    )
    themes, samples = (tmp_path / line for line in done.stdout.split())
    assert themes.is_relative_to(tmp_path)
    for name, found in (("themes", themes), ("sample_suites", samples)):
        there = {path.name for path in (ROOT / name).iterdir() if path.suffix in (".toml", ".py")}
        assert there
        assert {path.name for path in found.iterdir()} >= there


@pytest.mark.slow
def test_the_wheel_holds_the_program_and_nothing_of_its_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "workbench/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]
