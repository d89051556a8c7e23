"""CPU time and loaded modules of the commands that must answer at once. Prints figures; asserts nothing.

Gates in CPU: 60 ms for `--version` and 120 ms for `--help`, neither with Textual; 150 ms for `validate` of one file.
The first round writes the compiled modules, which the others use.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

from benchmarks.sizes import sized

RUNS = sized(9, 1)


def cpu_ms(words: list[str]) -> float:
    """Return the user and system time of one child process in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    for label, words in (
        ("python alone", ["-c", "pass"]),
        ("--version", ["-m", "workbench", "--version"]),
        ("--help", ["-m", "workbench", "--help"]),
        ("run --help", ["-m", "workbench", "run", "--help"]),
        ("validate (a file)", ["-m", "workbench", "validate", "sample_suites/weather.toml"]),
        ("validate (samples)", ["-m", "workbench", "validate", "sample_suites"]),
    ):
        cpu_ms(words)
        print(f"{label:<20} {statistics.median(cpu_ms(words) for _ in range(RUNS)):6.0f} ms CPU")


if __name__ == "__main__":
    main()
