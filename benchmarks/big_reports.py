"""What reports on a batch of a thousand, a hundred thousand and a million stored runs cost: seconds and peak memory of
each command. Prints, asserts nothing.

Goals: a million runs take no more than some 300 MB above what the cases of their suite take, whatever the form.

`python -m benchmarks.big_reports FOLDER [CASES MODELS]` measures one history, which is built in FOLDER unless it is
there; without numbers, all three.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.big_history import built
from benchmarks.sizes import sized

SIZES = ((100, 10), (10_000, 10), (50_000, 20))
COMMANDS = (
    ("history", "show", "2"),
    *(("history", "show", "2", "--format", form) for form in ("records", "csv", "junit", "markdown")),
    ("history", "diff", "1", "2"),
    ("grade", "2", "--trust"),
)


def cost(*words: str) -> str:
    """Return the wall and CPU seconds of a command, and its peak memory."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "workbench", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took_s, cpu_s = time.perf_counter() - began, used.ru_utime + used.ru_stime
    return f"{took_s:8.1f} s, {cpu_s:8.1f} s CPU, {used.ru_maxrss / 1024:6.0f} MB, exit code {process.returncode}"


def main() -> None:
    folder, numbers = Path(sys.argv[1]), tuple(map(int, sys.argv[2:4]))
    for cases, models in (numbers,) if numbers else SIZES:
        file = built(folder, cases, models, 2)
        print(f"{cases * models:,} runs in each of two batches", flush=True)
        for words in COMMANDS[:: sized(1, 3)]:
            history = file
            if "regrade" in words:  # which writes
                history = file.with_suffix(".regraded")
                shutil.copy(file, history)
            print(f"  {' '.join(words):40} {cost(*words, '--history', str(history))}", flush=True)


if __name__ == "__main__":
    main()
