"""What `workbench run` costs beside the bare minimum, each a process of its own, in turn, against one local endpoint.

The run is a user's: streamed, with a key, all five graders, a history and a JSON report. Beside it, raw sockets that
parse nothing, loops over the openai SDK, and pydantic-evals if it is installed (`minimal_loops.py`). Three works:
one-call cases, chains of four rounds, and many one-call cases; `--sizes` measures instead how time and memory grow from
100 to 10,000 cases. Wire is the time from the first request's arrival to the last answer, as the endpoint sees it; the
ideal is what latency alone takes. The share is (wire - ideal) ÷ (wire of the streamed loop - ideal). CPU is that of the
whole process and its children, start and report included. The noise is the wall time ÷ the CPU of a spin loop between
the processes: where it is over 1.15, other programs took the cores, and the figures are not to be used. Prints figures;
asserts nothing.

Aims, on quiet cores: 200 one-call cases at 1.20 times the ideal and a share of 0.15, chains at 1.10 times the ideal;
2,000 cases at 1.20 times the ideal, a share of 0.22, and 0.50 of the streamed loop's CPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from benchmarks.sizes import sized

ROOT = Path(__file__).parent.parent
AT_ONCE = 20
MAX_NOISE = 1.15
SPIN_S = 0.2
SUITE = """
format = 1
name = "Weather"
[[tools]]
name = "get_weather"
description = "Current weather for a city."
parameters = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
[[mocks]]
tool = "get_weather"
result = "Rain in {city}"
[limits]
max_rounds = ROUNDS
"""
CASE = """
[[cases]]
name = "Case NUMBER"
user = "What is the weather in Oslo?"
ordered = [CALLS]
"""
STREAMED = "openai SDK, streamed"
CALL = '{ tool = "get_weather", args = { city = "Oslo" } }'


@dataclass(frozen=True)
class Work:
    """`cases` runs with `rounds` requests each. The endpoint answers `calls` of them with a call."""

    name: str
    cases: int
    rounds: int
    calls: int
    latency_ms: float = 50.0

    @property
    def ideal_s(self) -> float:
        return self.cases / AT_ONCE * self.rounds * self.latency_ms / 1000


@dataclass(frozen=True)
class Figures:
    """The figures of one process: wire, wall and CPU in seconds, and its peak memory in MB."""

    wire_s: float
    wall_s: float
    cpu_s: float
    memory_mb: float


class Endpoint:
    """The local server in its own process; see `tests.providers.server.__main__`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._questions, self._answers = process.stdin, process.stdout
        self.url = self._answers.readline().strip()

    def times(self) -> tuple[int, float]:
        """Return the number of requests since the last call, and the seconds from the first to the last of them."""
        self._questions.write("\n")
        self._questions.flush()
        count, seconds = self._answers.readline().split()
        return int(count), float(seconds)


@contextmanager
def endpoint(work: Work) -> Iterator[Endpoint]:
    words = ["-m", "tests.providers.server", f"--latency-ms={work.latency_ms}", f"--rounds={work.calls}"]
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Endpoint(process)
        process.communicate()


def measured(command: Sequence[str], work: Work, server: Endpoint) -> Figures:
    """Run a command to its end and return its figures. Every request of the work must have arrived."""
    figures = timed(command)
    count, seconds = server.times()
    assert count == work.cases * work.rounds, f"{count} requests of {work.cases * work.rounds}"
    return replace(figures, wire_s=seconds + work.latency_ms / 1000)


def timed(command: Sequence[str]) -> Figures:
    """Run a command to its end and return its figures."""
    began = time.perf_counter()
    # The first round writes compiled modules for the others, as an installation does.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["OPENAI_API_KEY"] = "sk-a-key-as-long-as-real-ones-are-0123456789abcdef"
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Figures(0.0, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def suite_file(work: Work, folder: Path) -> Path:
    case = CASE.replace("CALLS", ", ".join([CALL] * work.calls))
    cases = "".join(case.replace("NUMBER", str(number)) for number in range(work.cases))
    path = folder / "weather.toml"
    path.write_text(SUITE.replace("ROUNDS", str(work.rounds)) + cases, encoding="utf-8")
    return path


def run_command(suite: Path, server: Endpoint, folder: Path, *options: str) -> list[str]:
    """Return a `workbench run` with the default options and its own history."""
    model = f"openai:test-model@{server.url}"
    files = [f"--history={folder / 'history.db'}", "-o", str(folder / "report.json")]
    limits = ["-q", f"--concurrency={AT_ONCE}"]
    return [sys.executable, "-m", "workbench", "run", str(suite), "--model", model, *files, *limits, *options]


def noise() -> float:
    """Return the wall time of a spin loop ÷ its CPU time: 1.0 on an idle core."""
    began, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < SPIN_S:
        pass
    return (time.perf_counter() - began) / (time.process_time() - cpu)


def compare(work: Work, repeats: int) -> None:
    """Measure each command in turn, `repeats` times, with a spin loop before each, and print the medians."""
    noises: list[float] = []
    with tempfile.TemporaryDirectory() as name, endpoint(work) as server:
        suite = suite_file(work, Path(name))
        loop = [sys.executable, "-m", "benchmarks.minimal_loops"]
        numbers = [server.url, str(work.cases), str(work.rounds), str(AT_ONCE)]
        ways = {
            "raw sockets": [*loop, "sockets", *numbers],
            "openai SDK": [*loop, "sdk", *numbers],
            STREAMED: [*loop, "sdk-streamed", *numbers],
            "workbench run": run_command(suite, server, Path(name)),
        }
        if importlib.util.find_spec("pydantic_evals") is not None:
            ways["pydantic-evals"] = [*loop, "pydantic-evals", *numbers]
        taken: dict[str, list[Figures]] = {way: [] for way in ways}
        for way in [*ways] * repeats:
            noises.append(noise())
            taken[way].append(measured(ways[way], work, server))
    print(f"\n{work.name}, {AT_ONCE} at a time; the ideal is {work.ideal_s:g} s")
    columns = f"{'wire':>7} {'÷ ideal':>8} {'share':>6} {'CPU/call':>9} {'÷ streamed':>11} {'process':>9} {'memory':>8}"
    print(f"  {'':<22} {columns}")
    medians = {way: median_of(figures) for way, figures in taken.items()}
    streamed = medians[STREAMED]
    for way, figures in medians.items():
        cpu_ms = figures.cpu_s / work.cases / work.rounds * 1000
        share = (figures.wire_s - work.ideal_s) / (streamed.wire_s - work.ideal_s)
        print(
            f"  {way:<22} {figures.wire_s:5.2f} s {figures.wire_s / work.ideal_s:8.2f} {share:6.2f} {cpu_ms:6.2f} ms"
            f" {figures.cpu_s / streamed.cpu_s:11.2f} {figures.wall_s:7.2f} s {figures.memory_mb:5.0f} MB"
        )
    tell_noise(noises)


def tell_noise(noises: Sequence[float]) -> None:
    found = statistics.median(noises)
    doubt = ""
    if found > MAX_NOISE:
        doubt = f": over {MAX_NOISE}, so other programs took the cores, and these figures are not to be used"
    print(f"  noise {found:.2f} (at most {max(noises):.2f}){doubt}")


def median_of(rounds: Sequence[Figures]) -> Figures:
    return Figures(*map(statistics.median, zip(*map(astuple, rounds), strict=True)))


def sizes() -> None:
    """Measure one run of each size, to show what grows with the number of cases."""
    for cases in (100, 500, 2000, 10_000):
        work = Work(f"{cases} one-call cases", cases, rounds=1, calls=1, latency_ms=5)
        with tempfile.TemporaryDirectory() as name, endpoint(work) as server:
            figures = measured(run_command(suite_file(work, Path(name)), server, Path(name)), work, server)
            stored = (Path(name) / "history.db").stat().st_size / cases
        per_case = f"{figures.wall_s / cases * 1000:.2f} ms, {figures.cpu_s / cases * 1000:.2f} ms CPU"
        print(f"{cases:>6} cases: {per_case} each, {figures.memory_mb:.0f} MB, {stored:.0f} bytes of history each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", action="store_true", help="how time and memory grow with the number of cases")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="only the 200 one-call cases")
    options = parser.parse_args()
    if options.sizes:
        sizes()
        return
    works = [
        Work("200 one-call cases", sized(200, 4), rounds=1, calls=1),
        Work("200 chains of four rounds", 200, rounds=4, calls=3),
        Work("2,000 one-call cases", 2000, rounds=1, calls=1),
    ]
    for work in works[: 1 if options.quick else None]:
        compare(work, options.repeats)


if __name__ == "__main__":
    main()
