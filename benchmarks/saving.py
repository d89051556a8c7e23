"""How long it takes to change one case of a big suite and to save it: 2,000 cases, about 1.1 MB.

Run with `python -m benchmarks.saving [CASES]`. The goal is a second for all parts together on a machine with two cores.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.sizes import sized
from benchmarks.suite_loading import big_suite
from workbench.suite.files import save, state_of
from workbench.suite.suite_text import SuiteText

ROUNDS = sized(5, 1)

_Result = TypeVar("_Result")


class Stopwatch:
    """Adds up the time of each part of the work in milliseconds, one list per part."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = {}

    def time(self, part: str, work: Callable[[], _Result]) -> _Result:
        """Do a part of the work."""
        start = time.perf_counter()
        result = work()
        self.parts.setdefault(part, []).append((time.perf_counter() - start) * 1000)
        return result


def change_and_save(text: str, watch: Stopwatch, beside: Stopwatch) -> None:
    """Do one round. Raises SystemExit if more than one case was changed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "big.toml")
        state = save(path, text, None)
        suite = watch.time("take apart", lambda: SuiteText.of(path.read_text(encoding="utf-8")))
        middle = len(suite.cases) // 2
        case = {**suite.cases[middle], "user": "Something else.", "repeats": 3}
        changed = watch.time("change a case", lambda: suite.with_case(middle, case))
        whole = watch.time("read it all back", changed.checked)
        watch.time("save", lambda: save(path, whole.text, state))
        if not whole.kept_formatting or path.read_text(encoding="utf-8").count("\n") != text.count("\n") + 1:
            raise SystemExit("more was changed than one case")
        beside.time("insert a case", lambda: suite.with_new_case(middle, case))
        beside.time("delete a case", lambda: suite.without_case(middle))
        beside.time("move a case", lambda: suite.with_case_moved(0, middle))
        beside.time("change the limits", lambda: suite.with_header("limits", {"max_rounds": 9}))
        known = state_of(path)
        beside.time("see that the file is the same", lambda: state_of(path, known))


def main() -> None:
    """Print the figures."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else sized(2000, 20)
    text = big_suite(cases)
    watch, beside = Stopwatch(), Stopwatch()
    for _ in range(ROUNDS):
        change_and_save(text, watch, beside)
    print(f"{cases} cases, {len(text) / 1e6:.2f} MB, {text.count(chr(10))} lines; median of {ROUNDS} rounds")
    for part, taken in watch.parts.items():
        print(f"{part:30} {statistics.median(taken):8.1f} ms")
    print(f"{'all of it':30} {sum(map(statistics.median, watch.parts.values())):8.1f} ms")
    print("beside it:")
    for part, taken in beside.parts.items():
        print(f"{part:30} {statistics.median(taken):8.1f} ms")


if __name__ == "__main__":
    main()
