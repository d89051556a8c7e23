"""`workbench history merge`: shards become one batch, and the report on it is that of one machine."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.batches import STUCK, WAITING, wait_until_one_is_kept
from tests.cli.program import IN_FULL, Program, read_until
from tests.cli.suites import WEATHER, WRONG

TIMES = {"started_at", "latency_ms", "latency", "loop_ms", "first_token_ms", "timing", "batch", "at_ms", "took_ms"}


def without_times(value: Any) -> Any:
    """Return a report without the parts that differ in every batch."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES and key[-3:] != "_ms"}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def shard(program: Program, which: str, *words: str) -> str:
    file = f"shards/{which.partition('/')[0]}.sqlite3"
    done = program.run("run", "weather.toml", "--shard", which, "--plan", "monday", "--history", file, "-q", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return file


def test_the_merged_batch_is_that_of_one_machine_with_its_gates_reports_and_baseline(program: Program) -> None:
    gate = "\n[gate]\nmin_pass_rate = 0.9\n"
    program.write("weather.toml", WEATHER + WRONG + gate)
    whole = program.run("run", "weather.toml", "--repeats", "3", "--format", "json")
    program.run("history", "name", "1", "main")
    for index in (1, 2, 3, 4):
        shard(program, f"{index}/4", "--repeats", "3")
    merged = program.run("history", "merge", "shards", "--format", "json", "--report", "r.xml", "--name", "now")
    assert merged.stderr == "batch 2: merged from 4 of 4 shards, plan monday; 6 of 6 runs, 6 of them new\n"
    assert merged.returncode == whole.returncode == 1, "the gate is missed"
    assert without_times(json.loads(merged.stdout)) == without_times(json.loads(whole.stdout))
    assert 'tests="2" failures="1"' in (program.folder / "r.xml").read_text()
    shown = program.run("history", "show", "now")
    assert "merged from 4 of 4 shards, plan monday" in shown.stdout
    named = (
        "belongs to the merged plan itself, and no earlier batch of the name now is known: name another with --baseline"
    )
    for which, why in (("mian", "there is no batch"), ("2", "belongs to the merged plan itself: name"), ("now", named)):
        refused = program.run("history", "merge", "shards", "--baseline", which)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("nothing was merged: ") and why in refused.stderr
    again = program.run("history", "merge", "shards", "--baseline", "main", "--fail-on", "regression", "--name", "main")
    assert "6 of 6 runs, 0 of them new" in again.stderr
    assert "against the baseline #1 main" in again.stdout, "it takes the name only then"
    assert program.run("history", "show", "main").stdout.startswith("#2 main")
    assert again.returncode == 1, "the gate is missed still"
    repeated = program.run("history", "merge", "shards", "--baseline", "main", "--name", "main", *IN_FULL)
    assert "against the baseline #1 of" in repeated.stdout, "which was main before"
    assert (repeated.returncode, "0 of them new" in repeated.stderr) == (1, True)
    easier = program.run("history", "merge", "shards", "--min-score", "0.2", *IN_FULL)
    assert easier.returncode == 0


def test_shards_of_other_checkouts_are_those_of_this_project(program: Program) -> None:
    for name in ("here", "there"):
        program.write(f"{name}/weather.toml", WEATHER)
        program.write(f"{name}/workbench.toml", "")
    for index, name in ((1, "here"), (2, "there")):
        elsewhere = Program(program.folder / name, program.variables)
        shard(elsewhere, f"{index}/2", "--repeats", "2")
    shutil.move(program.folder / "there" / "shards" / "2.sqlite3", program.folder / "here" / "shards")
    shutil.rmtree(program.folder / "there")
    here = Program(program.folder / "here", program.variables)
    merged = here.run("history", "merge", "shards/2.sqlite3", "shards/1.sqlite3", "--format", "json")
    report = json.loads(merged.stdout)
    assert (merged.returncode, {run["suite"] for run in report["runs"]}) == (0, {"weather.toml"})


@pytest.mark.slow
def test_what_a_killed_shard_lacks_is_made_by_it_by_another_or_by_the_merged_batch(program: Program) -> None:
    program.write("weather.toml", WEATHER + WAITING + WRONG)
    words = ("run", "weather.toml", "--concurrency", "1", "--plan", "monday", "--history", "killed.sqlite3")
    running = program.start(*words, "--shard", "1/1", first=STUCK)
    read_until(running, 'get_weather(city="Bergen")')
    wait_until_one_is_kept(program, running)
    meanwhile = program.run("history", "merge", "killed.sqlite3", "--no-report", "--name", "main")
    assert meanwhile.stderr == (
        "batch 1: merged from 1 of 1 shard, plan monday; 1 of 3 runs, 1 of them new\n"
        "2 runs missing: merge again when no shard is running\n"
        "shard 1/1, batch 1 of killed.sqlite3 is still running, with 2 of its 3 runs to make\n"
        "batch 1 is not called main yet: merge again with --name once no run is missing\n"
    )
    running.send_signal(signal.SIGKILL)
    running.communicate()
    merged = program.run("history", "merge", "killed.sqlite3", *IN_FULL)
    assert merged.returncode == 130
    assert (
        "2 runs missing: merge its shards again when they are whole, or 'workbench run --resume 1' makes them"
        in merged.stderr
    )
    assert "shard 1/1, batch 1 of killed.sqlite3 lacks 2 of its 3 runs\n" in merged.stderr
    program.run("run", "--resume", "--history", "killed.sqlite3")
    merged = program.run("history", "merge", "killed.sqlite3", *IN_FULL)
    assert "3 of 3 runs, 2 of them new" in merged.stderr
    assert merged.returncode == 1
    again = program.run("history", "merge", "killed.sqlite3", "--history", "other.sqlite3", *IN_FULL)
    assert (again.stdout.splitlines()[:-1], again.returncode) == (merged.stdout.splitlines()[:-1], 1)


@pytest.mark.slow
def test_a_merged_batch_makes_what_no_shard_has_made(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    for index in (1, 3):
        shard(program, f"{index}/4", "--repeats", "3")
    part = program.run("history", "merge", "shards", *IN_FULL, "--report", "junit.xml")
    assert part.returncode == 130
    junit = (program.folder / "junit.xml").read_text(encoding="utf-8")
    assert '<testsuite name="missing runs" tests="2" failures="0" errors="2"' in junit
    assert 'type="missing" message="' in junit
    assert " of 3 runs " in junit
    assert "merged from 2 of 4 shards, without 2, 4, plan monday; 3 of 6 runs, 3 of them new" in part.stderr
    done = program.run("run", "--resume", "1", "--format", "json")
    report = json.loads(done.stdout)
    assert "3 of 6 runs are missing" in done.stderr
    assert (done.returncode, report["totals"]["runs"], report["interrupted"]) == (1, 6, False)
    shard(program, "4/4", "--repeats", "3")
    late = program.run("history", "merge", "shards", *IN_FULL)
    assert "3 of 4 shards, without 2, plan monday; 6 of 6 runs, 0 of them new" in late.stderr
    assert "different results" not in late.stderr, "it came out alike"
    assert late.returncode == 1
    assert program.run("history", "merge", "shards", "--no-report").returncode == 0


def test_shards_that_were_cut_differently_say_so(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    for which in ("1/2", "3/3"):
        shard(program, which, "--repeats", "3")
    merged = program.run("history", "merge", "shards", "--no-report")
    assert merged.stderr == (
        "batch 1: merged from 2 shards, plan monday; 4 of 6 runs, 4 of them new\n"
        "2 runs missing: 'workbench run --resume 1' makes them\n"
        "the shards divided the runs differently, 1 went to several shards and 2 to none: all shards need "
        "the same N in --shard I/N, and with --shard-by cost the same history\n"
    )


@pytest.mark.slow
def test_shards_by_cost_in_one_history_become_one_batch_of_it(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    program.run("run", "weather.toml", "--quiet")
    for index in (1, 2):
        words = ("--shard", f"{index}/2", "--shard-by", "cost", "--plan", "monday", "--repeats", "3", "--quiet")
        assert program.run("run", "weather.toml", *words).returncode == 0
    assert "shard 2/2" in program.run("history").stdout
    merged = program.run("history", "merge", "--quiet")
    assert "merged from 2 of 2 shards, plan monday; 6 of 6 runs, 6 of them new" in merged.stderr
    listed = json.loads(program.run("history", "list", "--format", "json").stdout)
    assert [batch["number"] for batch in listed["batches"]] == [4, 1], "the shards are in it, and nowhere else"


@pytest.mark.slow
def test_what_cannot_be_merged_is_said_with_the_way_out(program: Program, tmp_path: Path) -> None:
    program.write("weather.toml", WEATHER)
    nothing = program.run("history", "merge")
    assert (nothing.returncode, "no shard is in" in nothing.stderr) == (2, True)
    one = shard(program, "1/1")
    program.write("weather.toml", WEATHER + WRONG)
    two = shard(program, "2/2")
    several = program.run("history", "merge", one, two)
    assert several.returncode == 2
    assert "these are shards of several plans" in several.stderr
    assert "the first two differ in suite weather.toml; choose one, as with --plan " in several.stderr
    plan = several.stderr.partition("--plan ")[2].partition(",")[0]
    chosen = program.run("history", "merge", one, two, "--plan", plan, "--no-report", "--history", "chosen.sqlite3")
    assert (chosen.returncode, "1 of 1 run, 1 of them new" in chosen.stderr) == (0, True), "both have the id monday"
    program.write("broken.sqlite3", "nonsense " * 200)
    program.write("notes.toml", "no = 'history'")
    other = program.run("history", "merge", "notes.toml")
    assert (other.returncode, other.stderr.splitlines()[0]) == (2, "left out: notes.toml is not a history")
    some = program.run("history", "merge", one, "broken.sqlite3", *IN_FULL)
    assert (some.returncode, "left out: " in some.stderr, "1 of 1 run, 1 of them new" in some.stderr) == (2, True, True)
    both = program.run("history", "merge", one, "--no-report", "--report", "r.xml")
    assert (both.returncode, "--no-report makes no report" in both.stderr) == (2, True)
    other = program.run("history", "merge", one, "--plan", "tuesday")
    assert "no shard of plan tuesday, only of plan monday" in other.stderr
