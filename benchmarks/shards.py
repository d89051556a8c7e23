"""Twenty shards on this machine, three of them killed by SIGKILL and repeated, merged twice in random order, against
one undisturbed batch.

Every report on them must be the same byte for byte, except for times. The exit code is 1 if one differs."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.sizes import sized
from tests.providers.server import Answer, Pause, Request, base_url_of, said
from tests.providers.server.server import Server
from workbench.history.history import History

SHARDS, KILLED, REPEATS, AT_ONCE = sized((20, (3, 8, 17), "3", 4), (2, (2,), "1", 2))
FORMS = ("json", "records", "csv", "junit", "markdown")
TIMES = re.compile(
    r'"(started_at|began_at|timing|batch)": ?("[^"]*"|\{[^}]*\}|null|\d+)|"[a-z_0-9]*_ms": ?[^,}\n]+|'
    r'(time|timestamp)="[^"]*"|\d[\d,.]* ?m?s\b|batch \d+'
)


def main() -> int:
    pace = random.Random(22)

    def answer(request: Request) -> Answer:
        done = said("openai", text="Paris, I think.")
        return Answer(done.pieces, before=(Pause(0.05 + pace.random() / 10),))

    with tempfile.TemporaryDirectory() as name, Server(answer) as server:
        folder = Path(name)
        model = f"openai:test-model@{base_url_of(server, 'openai')}"
        variables = {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("DATA", "CONFIG", "STATE")}
        environment = {**os.environ, **variables, "OPENAI_API_KEY": "none"}
        # The server of one sample numbers its messages as they arrive, so they differ in each batch.
        suites = [
            str(file) for file in sorted(Path("sample_suites").resolve().glob("*.toml")) if file.stem != "office"
        ][: sized(None, 2)]
        run = ["run", *suites, "--model", f"offline,{model}", "--repeats", REPEATS, "--no-judge-cache", "-q"]

        def workbench(*words: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "workbench", *words]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            return subprocess.Popen(command, cwd=folder, env=environment, **pipes)  # type: ignore[call-overload,no-any-return]

        def made(*words: str) -> int:
            started = workbench(*words)
            _, said = started.communicate()
            print(*(f"  {line}" for line in said.splitlines()[:1]), sep="\n", end="\n" if said else "")
            return started.returncode

        def shard(index: int) -> list[str]:
            return [*run, "--plan", "p", "--shard", f"{index}/{SHARDS}"]

        def kill(index: int) -> None:
            file = folder / f"killed-{index}.sqlite3"
            started = workbench(*shard(index), "--history", file.name)
            while started.poll() is None and not some_over(file):
                time.sleep(0.01)
            started.send_signal(signal.SIGKILL)
            started.communicate()

        began = time.monotonic()
        print("undisturbed:", made(*run, "--history", "whole.sqlite3"), f"{time.monotonic() - began:.1f} s")
        began = time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(kill, KILLED))
            files = [f"shard-{index}.sqlite3" for index in range(1, SHARDS + 1)]
            codes = list(
                pool.map(lambda index: made(*shard(index), "--history", files[index - 1]), range(1, SHARDS + 1))
            )
        print(f"{SHARDS} shards: codes {sorted(set(codes))}, {time.monotonic() - began:.1f} s")
        for index in KILLED:
            with History(folder / f"killed-{index}.sqlite3") as history:
                (batch,) = history.batches()
                print(f"shard {index} was killed with {batch.planned - batch.missing} of {batch.planned} runs")
        both = [*files, *(f"killed-{index}.sqlite3" for index in KILLED)]
        for turn in (1, 2):
            random.shuffle(both)
            for file in both:
                print(f"turn {turn}, {file}:", made("history", "merge", file, "--history", "merged.sqlite3", "-q"))
        return max(compare(folder, form, workbench) for form in FORMS)


def some_over(file: Path) -> bool:
    """Return whether a shard has made some of its runs."""
    if not file.exists():
        return False
    with History(file) as history:
        return any(batch.planned > batch.missing > 0 for batch in history.batches())


def compare(folder: Path, form: str, workbench: Any) -> int:
    """Compare a report on both batches. Return 1 if they differ."""
    texts = []
    for name in ("whole", "merged"):
        text, _ = workbench("history", "show", "1", "--history", f"{name}.sqlite3", "--format", form).communicate()
        if form == "json":  # what `run` reports, and not what is listed of a batch
            workbench("export", "1", "-o", "out", "--format", "json", "--history", f"{name}.sqlite3").wait()
            text = (folder / "out" / "batch-1.json").rename(folder / f"{name}.json").read_text()
            assert len(json.loads(text)["runs"]) > 0
        texts.append(without_times(form, text))
    same = texts[0] == texts[1]
    print(f"{form}: {len(texts[0]):,} characters without times, {'the same' if same else 'NOT THE SAME'}")
    if not same:
        for first, second in zip(*(text.splitlines() for text in texts), strict=False):
            if first != second:
                print(f"  - {first[:300]}\n  + {second[:300]}")
                break
    return 0 if same else 1


def without_times(form: str, text: str) -> str:
    """Return a report without times and the batch's number."""
    if form == "json":
        return json.dumps(timeless(json.loads(text)))
    if form != "csv":
        return TIMES.sub("TIME", text)
    rows = list(csv.reader(io.StringIO(text)))
    kept = [number for number, name in enumerate(rows[0]) if not name.endswith("_ms")]
    return "\n".join(repr([row[number] for number in kept]) for row in rows)


def timeless(value: Any) -> Any:
    """Return a part of a JSON report without times."""
    if isinstance(value, list):
        return [timeless(each) for each in value]
    if not isinstance(value, dict):
        return TIMES.sub("TIME", value) if isinstance(value, str) else value
    left_out = {
        "started_at",
        "timing",
        "batch",
        "latency",
        *(["statistics"] if value.get("of") == "latency_ms" else []),
    }
    return {key: timeless(each) for key, each in value.items() if key not in left_out and not key.endswith("_ms")}


if __name__ == "__main__":
    sys.exit(main())
