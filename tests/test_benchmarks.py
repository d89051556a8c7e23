"""Each benchmark works: run with sizes just large enough to see that. No time is asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HELPERS = {"__init__", "sizes", "minimal_loops", "minimal_app"}
"""What the others import or start."""

ARGUMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "big_history": (
        ("build", "FOLDER", "5", "2", "2"),
        ("measure", "FOLDER/5x2x2.sqlite3"),
    ),
    "big_reports": (("FOLDER", "5", "2"),),
    "cluster": (("throughput",),),
    "engine": (("--quick", "--repeats", "1"),),
}
"""Those without a line here take none."""

NAMES = sorted(file.stem for file in (ROOT / "benchmarks").glob("*.py") if file.stem not in HELPERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_works(name: str, tmp_path: Path) -> None:
    for arguments in ARGUMENTS.get(name, ((),)):
        words = [word.replace("FOLDER", str(tmp_path)) for word in arguments]
        command = [sys.executable, "-m", f"benchmarks.{name}", *words, "--brief"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
