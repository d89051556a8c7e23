"""Runs made by the workers of a cluster on this machine, `local:2`, against one local endpoint that counts.

`throughput` makes the same runs in one process and with `--cluster local:2`, in turn. `kills`
makes many runs while workers are killed by SIGKILL again and again, kills the program itself, and resumes: at the end
each place of the batch must have one run, and the endpoint must never have had more requests at a time than it allows.
`minute` does that with a limit of requests per minute, and counts them in every minute. Prints figures; fails where a
limit was not held or a run is missing.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from benchmarks.sizes import sized

ROOT = Path(__file__).parent.parent
KEY = "sk-a-key-as-long-as-real-ones-are-0123456789abcdef"
SUITE = """format = 1
name = "Weather"
[[tools]]
name = "get_weather"
description = "Current weather for a city."
parameters = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
[[mocks]]
tool = "get_weather"
result = "Rain in {city}"
[limits]
max_rounds = 1
"""
CASE = """
[[cases]]
name = "Case NUMBER"
user = "What is the weather in Oslo?"
ordered = [{ tool = "get_weather", args = { city = "Oslo" } }]
"""
SETTINGS = """[models.counted]
provider = "openai"
model = "test-model"
base_url = "URL"
api_key_env = "OPENAI_API_KEY"
"""


def serve(latency_ms: float) -> None:
    """Run the endpoint in its own process.

    For each line of input it prints the number of requests since the last line, the maximum number of concurrent
    requests, and the maximum within any minute."""
    from tests.providers.server import Answer, Call, Pause, Request, Server, base_url_of, blocks_of

    call = [Call("get_weather", {"city": "Oslo"})]
    answer = Answer(tuple(blocks_of("openai", "", calls=call)), before=(Pause(latency_ms / 1000),))
    arrivals: list[float] = []

    def answer_to(_request: Request) -> Answer:
        arrivals.append(time.monotonic())
        return answer

    with Server(answer_to) as server:
        print(base_url_of(server, "openai"), flush=True)
        for _ in sys.stdin:
            print(len(arrivals), server.most_at_once, most_within(arrivals, 60.0), flush=True)
            arrivals.clear()
            server.most_at_once = 0


def most_within(times: list[float], seconds: float) -> int:
    """Return the maximum number of times within a span of seconds, its end excluded."""
    most = first = 0
    for last, at in enumerate(times):
        while times[first] <= at - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


class Work:
    """A project with a suite of `cases` cases, a model with limits, and an endpoint."""

    def __init__(self, folder: Path, endpoint: subprocess.Popen[str], cases: int, limits: str) -> None:
        assert endpoint.stdin is not None and endpoint.stdout is not None
        self.folder = folder
        self._questions, self._answers = endpoint.stdin, endpoint.stdout
        url = self._answers.readline().strip()
        (folder / "workbench.toml").write_text(SETTINGS.replace("URL", url) + limits, encoding="utf-8")
        many = "".join(CASE.replace("NUMBER", str(number)) for number in range(cases))
        (folder / "weather.toml").write_text(SUITE + many, encoding="utf-8")

    def counted(self) -> tuple[int, int, int]:
        """Return the requests since the last call, the maximum number of concurrent ones, and the maximum within a
        minute."""
        self._questions.write("\n")
        self._questions.flush()
        count, at_once, in_minute = map(int, self._answers.readline().split())
        return count, at_once, in_minute

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `workbench run` in the project."""
        environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
        files = ["--history", "history.db", "-q", "--trust", "--format", "csv", "-o", "report.csv"]
        command = [sys.executable, "-m", "workbench", "run", *words, *files]
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL)

    def statuses(self) -> Counter[str]:
        """Return the number of the history's runs by status."""
        with closing(sqlite3.connect(self.folder / "history.db")) as database:
            return Counter(dict(database.execute("SELECT coalesce(status, 'missing'), count(*) FROM runs GROUP BY 1")))

    def wait_for_more(self, program: subprocess.Popen[bytes]) -> None:
        """Wait until a program has begun its runs. Killing a worker while all start is a different test."""
        before = None
        while program.poll() is None:
            with suppress(sqlite3.OperationalError):
                now = self.statuses()["passed"]
                if now > (before := now if before is None else before):
                    return
            time.sleep(0.2)


@contextmanager
def work(cases: int, latency_ms: float, limits: str) -> Iterator[Work]:
    command = [sys.executable, "-m", "benchmarks.cluster", "serve", f"--latency-ms={latency_ms}"]
    with (
        tempfile.TemporaryDirectory() as name,
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as endpoint,
    ):
        yield Work(Path(name), endpoint, cases, limits)
        endpoint.communicate()


def workers_of(program: int) -> list[int]:
    """Return the worker processes that a program has started."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == program and b"spawn_main" in command:
            found.append(int(folder.name))
    return found


def throughput(runs: int, repeats: int, latency_ms: float) -> None:
    ways = {"one process": (), "--cluster local:2": ("--cluster=local:2",)}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    with work(runs, latency_ms, "concurrency = 64\n") as project:
        for _ in range(repeats):
            for way, words in ways.items():
                began = time.perf_counter()
                assert project.start("weather.toml", "--model=counted", *words).wait() == 0
                taken[way].append(time.perf_counter() - began)
                count, at_once, _ = project.counted()
                assert (count, at_once <= 64) == (runs, True), (way, count, at_once)
    print(f"{runs:,} runs, {latency_ms:g} ms each, 64 at a time; whole processes, median of {repeats}")
    for way, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"  {way:<20} {median:6.1f} s  {runs / median:6.0f} runs a second")


def kills(runs: int, times: int, latency_ms: float, limits: str, every_s: float) -> tuple[int, int]:
    """Return the maximum number of concurrent requests, and the maximum within a minute."""
    chance = random.Random(4711)
    with work(runs, latency_ms, limits) as project:
        began = time.perf_counter()
        program = project.start("weather.toml", "--model=counted", "--cluster=local:2")
        killed = 0
        project.wait_for_more(program)
        while killed < times and program.poll() is None:
            time.sleep(every_s)
            if killed == times // 2:
                program.send_signal(signal.SIGKILL)
                program.wait()
                left = project.statuses()
                print(f"  the program killed after {time.perf_counter() - began:.0f} s: {dict(left)}")
                program = project.start("--resume", "1", "--cluster=local:2")
                project.wait_for_more(program)
                killed += 1
                continue
            if workers := workers_of(program.pid):
                os.kill(chance.choice(workers), signal.SIGKILL)
                killed += 1
        code = program.wait()
        count, at_once, in_minute = project.counted()
        statuses = project.statuses()
        print(f"  {killed - 1} workers and the program killed; {time.perf_counter() - began:.0f} s, exit code {code}")
        print(f"  {dict(statuses)}; {count:,} requests, {at_once} at a time, {in_minute} in a minute at most")
        assert statuses == {"passed": runs}, statuses
        return at_once, in_minute


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("throughput", "kills", "minute", "serve"))
    parser.add_argument("--latency-ms", type=float, default=100.0)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--repeats", type=int, default=sized(3, 1))
    parser.add_argument("--kills", type=int, default=11)
    parser.add_argument("--every-s", type=float, default=12.0)
    options = parser.parse_args()
    if options.what == "serve":
        serve(options.latency_ms)
    elif options.what == "throughput":
        throughput(options.runs or sized(4000, 4), options.repeats, options.latency_ms)
    elif options.what == "kills":
        limits = "concurrency = 48\n"
        at_once, _ = kills(options.runs or 20_000, options.kills, options.latency_ms, limits, options.every_s)
        assert at_once <= 48, at_once
    else:
        limits = "concurrency = 16\nrequests_per_minute = 600\n"
        at_once, in_minute = kills(options.runs or 1500, options.kills, options.latency_ms, limits, options.every_s)
        assert at_once <= 16 and in_minute <= 600, (at_once, in_minute)


if __name__ == "__main__":
    main()
