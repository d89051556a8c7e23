"""`--fail-on regression` confirms that a case broke by reruns, until chance is excluded."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.by_chance import SUITE, Booking, by_chance, suite
from tests.cli.program import IN_FULL, Program
from tests.cli.suites import WEATHER, WRONG
from tests.providers.server import HANG, Answer, Request, Server, Signal, Tell, document
from tests.sampled_rows import first_of, first_rows

RUN = ("run", "rooms.toml", "--trust", *IN_FULL)
BASELINE = ("--baseline", "1", "--fail-on", "regression")


class Rooms:
    """The program and its agent, with a first batch in which every room is booked."""

    def __init__(self, program: Program, server: Server, cases: int, *words: str) -> None:
        self.program, self.server = program, server
        self.model = f"openai:agent@{server.url}/v1"
        program.write("rooms.toml", suite(cases))
        first = self.run("--concurrency", "1", *words)
        assert first.returncode == 0, first.stdout + first.stderr
        self.asked = len(server.requests)

    def run(self, *words: str) -> Any:
        return self.program.run(*RUN, "--model", self.model, *words)

    def report(self, *words: str) -> Any:
        return json.loads(self.run(*BASELINE, "--format", "json", *words).stdout)


@contextmanager
def rooms(program: Program, right: Callable[[int, int], bool], cases: int = 6, *words: str) -> Iterator[Rooms]:
    with Server(Booking(right)) as server:
        yield Rooms(program, server, cases, *words)


def test_what_fails_by_chance_is_made_again_and_no_regression(program: Program) -> None:
    with rooms(program, lambda room, asked: (room, asked) != (3, 2)) as booked:
        done = booked.run(*BASELINE, "--report", "r.md")
        assert done.returncode == 0, done.stdout
        assert (program.folder / "r.md").read_text(encoding="utf-8").startswith("## ✓ Good enough\n")
        announced = "1 case is rerun until it is decided whether it broke, with at most 6 runs"
        assert done.stderr == f"{announced}: --confirm none reruns nothing\n"
        assert "· Room 3  not confirmed: passed 2 of 2 reruns\n" in done.stdout
        assert "  all 6 cases: good runs -16.7 points (95%: " in done.stdout
        verdict = "✓ no regression since the baseline #1 · 1 case failed and passed again · 2 extra runs"
        assert verdict in done.stdout
        assert "6 runs: 5 passed, 1 failed" in done.stdout, "reruns count in no rate"
        listed = program.run("history", "list").stdout
        assert "reruns of cases that broke, which count for no case\n#3 " in listed
        assert (
            "reruns of cases that broke in batch 2: they count for no case"
            in program.run("history", "show", "3").stdout
        )
        assert program.run("history", "diff", "1").stdout.startswith("#1 ("), "the newest is the batch itself"
        refused = program.run("history", "diff", "1", "3")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "only reruns cases that broke in batch 2" in refused.stderr
        for words in (("--resume", "3"), ("--baseline", "3")):
            assert "batch 3 has reruns of cases that broke in batch 2" in booked.run(*words).stderr


def test_what_broke_fails_its_reruns_too_and_is_a_regression(program: Program) -> None:
    with rooms(program, lambda room, asked: asked == 1 or (room != 3 and (room, asked) != (5, 2))) as booked:
        report = booked.report("--report", "r.xml", "--report", "r.md", "--report", "r.html")
    found = report["baseline"]
    assert (report["exit_code"], found["regressed"], found["confirm"], found["reruns_batch"]) == (1, True, "reruns", 3)
    assert found["reruns"] == sum(case["failed"] + case["good"] for case in found["confirmed"]) == 6
    assert [(case["case_id"], case["outcome"], case["failed"], case["good"]) for case in found["confirmed"]] == [
        ("room-3", "confirmed", 4, 0),
        ("room-5", "recovered", 0, 2),
    ]
    (test,) = found["good_runs"]
    assert (test["cases"], test["worse"], test["p"]) == (6, False, 0.5)
    assert test["difference"] == pytest.approx(-1 / 3)
    assert test["low"] < test["difference"] < test["high"]
    assert (report["totals"]["runs"], report["totals"]["failed"]) == (6, 2)
    assert found["verdict"].startswith(
        "regression: 1 case broke since the baseline #1 · 1 case failed and passed again"
    )
    for file in ("r.xml", "r.md", "r.html"):
        text = (program.folder / file).read_text(encoding="utf-8")
        assert "broke: failed 4 of 4 reruns" in text, file
        assert "not confirmed: passed 2 of 2 reruns" in text, file


@pytest.mark.slow
def test_with_repeats_every_run_has_to_pass_and_reruns_are_single_runs(program: Program) -> None:
    with rooms(program, lambda room, asked: asked <= 3 or (room == 2 and asked != 5), 4, "--repeats", "3") as booked:
        program.write("rooms.toml", suite(2))
        report = booked.report("--repeats", "3", "--case", "room-2", "--concurrency", "1")
    assert (report["exit_code"], report["cases"][0]["status"]) == (0, "failed"), "one of three runs failed"
    (case,) = report["baseline"]["confirmed"]
    assert (case["outcome"], case["good"]) == ("recovered", 2)


def test_where_all_cases_are_worse_nothing_is_made_again(program: Program) -> None:
    with rooms(program, lambda _room, asked: asked == 1) as booked:
        done = booked.run(*BASELINE)
        assert len(booked.server.requests) == booked.asked + 6, "each case fails at once"
    assert (done.returncode, done.stderr) == (1, "")
    assert "all 6 cases: good runs -100.0 points" in done.stdout
    assert "✗ regression: all cases together are worse and 6 cases broke since the baseline #1\n" in done.stdout


@pytest.mark.slow
def test_no_more_runs_are_made_again_than_the_batch_has_and_what_stays_open_is_named(program: Program) -> None:
    with rooms(program, lambda room, asked: room != 1 or asked % 2 == 1, 4) as booked:
        done = booked.run(*BASELINE)
    assert done.returncode == 0, done.stdout
    assert "1 case is rerun until it is decided whether it broke, with at most 4 runs" in done.stderr
    why = "a batch gets at most as many reruns as it has runs: --repeats N allows for more"
    assert f"▲ Room 1  perhaps by chance: failed 2 of 4 reruns; {why}\n" in done.stdout
    assert "✓ no regression since the baseline #1 · 1 case failed perhaps by chance · 4 extra runs" in done.stdout


def test_a_suite_of_one_case_can_have_a_regression_too(program: Program) -> None:
    with rooms(program, lambda _room, asked: asked == 1, 1) as booked:
        done = booked.run(*BASELINE)
        assert len(booked.server.requests) == booked.asked + 1 + 3, "three failures are the fewest that decide"
    assert done.returncode == 1
    assert "with at most 3 runs" in done.stderr
    assert "✗ Room 1  broke: failed 3 of 3 reruns\n" in done.stdout


def test_the_runs_there_are_go_to_as_many_cases_as_they_can_confirm(program: Program) -> None:
    with rooms(program, lambda _room, asked: asked == 1, 5) as booked:
        found = booked.report()["baseline"]
    outcomes = [(case["outcome"], case["failed"]) for case in found["confirmed"]]
    assert outcomes == [("confirmed", 4), ("perhaps by chance", 1), *[("perhaps by chance", 0)] * 3]
    assert found["regressed"] is True


@pytest.mark.parametrize(("way", "code"), first_rows([("none", 1), ("repeats", 0)], 1))
def test_without_reruns_all_that_broke_decides_or_repeats_do(program: Program, way: str, code: int) -> None:
    with rooms(program, lambda room, asked: (room, asked) != (3, 2)) as booked:
        done = booked.run(*BASELINE, "--confirm", way)
        assert len(booked.server.requests) == booked.asked + 5 * 2 + 1
    assert (done.returncode, done.stderr) == (code, "")
    assert ("nothing can be rerun here, and its repeats do not decide" in done.stdout) == (way == "repeats")
    assert ("regression: 1 case broke since the baseline #1\n" in done.stdout) == (way == "none")


@pytest.mark.slow
def test_enough_repeats_confirm_without_reruns(program: Program) -> None:
    with rooms(program, lambda room, asked: asked <= 5 or room != 3, 6, "--repeats", "5") as booked:
        done = booked.run(*BASELINE, "--repeats", "5")
    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ Room 3  broke: failed 5 of 5 repeats\n" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("repeats", ["1", "3"])
def test_an_agent_that_is_right_in_most_of_its_runs_has_no_regression(program: Program, repeats: str) -> None:
    program.write("rooms.toml", suite(30))
    agent = by_chance(0.95, 7)
    with Server(agent) as server:
        words = (*RUN, "--model", f"openai:agent@{server.url}/v1", "--repeats", repeats)
        program.run(*words)
        broke = 0
        for _ in range(3):
            report = json.loads(program.run(*words, *BASELINE, "--format", "json").stdout)
            broke += sum(change["kind"] == "broke" for change in report["baseline"]["changes"])
            assert report["exit_code"] == 0, report["baseline"]["verdict"]
            assert report["baseline"]["reruns"] <= report["totals"]["runs"] == 30 * int(repeats)
        assert broke


@pytest.mark.slow
def test_a_case_that_failed_often_before_takes_more_to_break(program: Program) -> None:
    """Room 1 is right every second time: after five such runs at least, its reruns are held against that."""
    with rooms(program, lambda room, asked: room != 1 or asked % 2 == 1) as booked:
        for _ in range(5):
            booked.run()
    with Server(Booking(lambda room, _asked: room != 1), port=booked.server.port):
        (case,) = booked.report()["baseline"]["confirmed"]
    assert (case["outcome"], case["failed"]) == ("perhaps by chance", 6), "three are enough without a history"


WRITES = """
import sys
sys.path.append({servers!r})
from plain import PlainServer
server = PlainServer("rooms")
@server.tool({annotations})
def book(room: int) -> str:
    if room == 2:
        open("booked", "a").write("x")
    return "booked"
server.run()
"""


@pytest.mark.slow
def test_no_case_is_made_again_that_changed_something_unless_that_is_allowed(program: Program) -> None:
    from tests.cli.test_tools import SERVERS

    program.write("server.py", WRITES.format(servers=str(SERVERS), annotations=""))
    head = 'format = 1\nname = "Rooms"\n[[servers]]\nname = "rooms"\ncommand = ["python", "server.py"]\n'
    program.write("rooms.toml", suite(5, head))

    booking = Booking(lambda room, asked: True)
    with Server(booking) as server:
        words = (*RUN, "--model", f"openai:agent@{server.url}/v1", "--execute-all")
        assert program.run(*words).returncode == 0
        program.write("rooms.toml", suite(5, head).replace("args = { room = 2 }", "args = { room = 3 }"))
        done = program.run(*words, *BASELINE)
        assert (done.returncode, done.stderr) == (0, "")
        why = "it executed book, which is not read-only; --confirm-writes reruns it anyway"
        assert f"▲ Room 2  perhaps by chance: not rerun: {why}\n" in done.stdout
        assert "rooms.toml changed since the baseline: 1 case changed (Room 2)" in done.stdout
        assert len((program.folder / "booked").read_text()) == 2
        again = program.run(*words, *BASELINE, "--confirm-writes")
        assert again.returncode == 1
        assert "✗ Room 2  broke: failed 3 of 3 reruns\n" in again.stdout
        assert len((program.folder / "booked").read_text()) == 2 + 1 + 3


def test_what_a_model_always_answers_needs_no_rerun(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--record", "made")
    program.run("run", "weather.toml", "--model", "replay:made")
    program.write("weather.toml", WEATHER.replace('args = { city = "Oslo" }', 'args = { city = "Rome" }'))
    done = program.run("run", "weather.toml", *BASELINE)
    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ Right  broke: offline always gives the same answer\n" in done.stdout
    annotated = program.run("run", "weather.toml", *BASELINE, "--format", "github").stdout
    assert "::since the baseline #1: broke: offline always gives the same answer" in annotated
    replayed = program.run(
        "run", "weather.toml", "--model", "replay:made", "--baseline", "2", "--fail-on", "regression"
    )
    assert replayed.returncode == 1
    assert "✗ Right  broke: the recording answers as it did in the baseline\n" in replayed.stdout


@pytest.mark.slow
def test_a_recording_of_another_answer_is_perhaps_chance(program: Program) -> None:
    with rooms(program, lambda room, asked: (room, asked) != (3, 2), 6, "--record", "first") as booked:
        booked.run("--record", "second")
    for folder in ("first", "second"):
        (program.folder / folder).rename(program.folder / "made")
        done = program.run(
            "run",
            "rooms.toml",
            "--model",
            "replay:made",
            "--baseline",
            "3",
            "--fail-on",
            "regression",
            *IN_FULL,
        )
        if folder == "first":
            done = program.run("run", "rooms.toml", "--model", "replay:made", *IN_FULL)
            assert done.returncode == 0
            (program.folder / "made").rename(program.folder / "first")
    assert done.returncode == 0, done.stdout
    why = "not rerun: a recording always gives the same answer, and its repeats do not decide"
    assert f"▲ Room 3  perhaps by chance: {why}" in done.stdout


@pytest.mark.parametrize("confirm", first_of([(), ("--confirm", "none")], 1))
def test_a_case_that_is_skipped_or_expects_nothing_any_more_is_missing(
    program: Program, confirm: tuple[str, ...]
) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    program.run("run", "weather.toml")
    program.write("weather.toml", WEATHER.replace('tags = ["easy"]', 'skip = "later"') + WRONG)
    done = program.run("run", "weather.toml", *BASELINE, *confirm)
    assert done.returncode == 1
    assert "  missing  Weather › Right  passed 1.00 → skipped: later\n" in done.stdout
    assert "weather.toml changed since the baseline: 1 case changed (Right)" in done.stdout
    assert "✗ regression: 1 case is missing since the baseline #1\n" in done.stdout
    without = WEATHER[: WEATHER.index("[[cases.ordered]]")]
    program.write("weather.toml", without + WRONG)
    done = program.run("run", "weather.toml", *BASELINE, *confirm, "--format", "json", "--report", "r.xml")
    changes = json.loads(done.stdout)["baseline"]["changes"]
    assert done.returncode == 1
    assert [(change["kind"], change["case_id"], change["sentence"]) for change in changes] == [
        ("missing", "right", "passed 1.00 → not graded: expects nothing any more")
    ]
    assert "since the baseline #1: missing" in (program.folder / "r.xml").read_text()


@pytest.mark.slow
def test_a_case_in_quarantine_is_no_regression(program: Program) -> None:
    head = SUITE.replace('name = "Rooms"', 'name = "Rooms"\n[gate]\nquarantine = ["flaky"]')
    tagged = suite(6, head).replace('user = "Book room 3."', 'user = "Book room 3."\ntags = ["flaky"]')
    with rooms(program, lambda room, asked: asked == 1 or room != 3) as booked:
        program.write("rooms.toml", tagged)
        done = booked.run(*BASELINE)
        none = booked.run(*BASELINE, "--confirm", "none")
    assert (done.returncode, done.stderr, none.returncode) == (0, "", 0)
    assert "✓ no regression since the baseline #1\n" in done.stdout
    assert "all 5 cases: good runs +0.0 points" in done.stdout


def test_an_error_while_a_case_is_made_again_leaves_it_undecided_and_is_one(program: Program) -> None:
    with rooms(program, lambda room, asked: (room, asked) != (3, 2)) as booked:
        booking = Booking(lambda room, asked: room != 3)

        def failing(request: Request) -> Answer:
            if booking.asked[3]:
                return document({"error": {"message": "no such model"}}, 404)
            return booking(request)

    with Server(failing, port=booked.server.port):
        done = booked.run(*BASELINE, "--concurrency", "1", "--format", "json")
    report = json.loads(done.stdout)
    (case,) = [case for case in report["baseline"]["confirmed"] if case["case_id"] == "room-3"]
    assert (case["outcome"], case["failed"], case["good"]) == ("perhaps by chance", 0, 0)
    assert "reruns ended in an error" in case["why"]
    assert done.returncode == report["exit_code"] == 3


@pytest.mark.slow
def test_what_was_made_again_is_kept_where_somebody_interrupts(program: Program) -> None:
    with rooms(program, lambda room, asked: True) as booked:
        pass
    stuck, booking = Signal(), Booking(lambda room, asked: room != 3)

    def hanging(request: Request) -> Answer:
        answer = booking(request)
        return answer if booking.asked[3] < 3 else Answer((Tell(stuck), HANG))

    with Server(hanging, port=booked.server.port):
        words = (*RUN, "--model", booked.model, "--concurrency", "1", *BASELINE)
        with program.start(*words) as running:
            stuck.wait(30)
            running.send_signal(signal.SIGINT)
            stdout, _ = running.communicate()
    assert running.returncode == 130
    assert "▲ Room 3  perhaps by chance: failed 1 of 1 rerun; stopped\n" in stdout
    assert "1 failed" in program.run("history", "show", "3").stdout
    assert "nothing to resume" in program.run("run", "--resume").stderr


@pytest.mark.slow
def test_a_case_that_was_over_before_its_batch_was_resumed_is_made_again(program: Program) -> None:
    with rooms(program, lambda room, asked: True) as booked:
        pass
    stuck, booking = Signal(), Booking(lambda room, asked: room != 3)

    def hanging(request: Request) -> Answer:
        answer = booking(request)
        return answer if not booking.asked[6] else Answer((Tell(stuck), HANG))

    with Server(hanging, port=booked.server.port):
        words = (*RUN, "--model", booked.model, "--concurrency", "1")
        with program.start(*words) as running:
            stuck.wait(30)
            running.send_signal(signal.SIGINT)
            running.communicate()
    with Server(Booking(lambda room, asked: room != 3), port=booked.server.port):
        done = program.run("run", "--resume", "2", "--trust", "--model", booked.model, *IN_FULL, *BASELINE)
    assert "1 case is rerun until it is decided whether it broke, with at most 6 runs" in done.stderr
    assert "✗ Room 3  broke: failed 3 of 3 reruns\n" in done.stdout
    assert done.returncode == 1


@pytest.mark.slow
def test_a_batch_without_a_terminal_makes_sure_as_well(program: Program) -> None:
    with rooms(program, lambda room, asked: asked == 1 or room != 3) as booked:
        begun = booked.run(*BASELINE, "--detach", "--report", "r.json")
        assert begun.returncode == 0, begun.stderr
        shown = program.run("attach", "2")
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert json.loads((program.folder / "r.json").read_text())["baseline"]["confirmed"][0]["failed"] == 3


@pytest.mark.slow
def test_a_merge_confirms_by_repeats_or_says_that_it_cannot(program: Program) -> None:
    with rooms(program, lambda room, asked: asked <= 5 or room != 3, 6, "--repeats", "5") as booked:
        for which in ("1/2", "2/2"):
            booked.run("--repeats", "5", "--shard", which, "--plan", "p")
        merged = program.run("history", "merge", *BASELINE, *IN_FULL)
        assert "✗ Room 3  broke: failed 5 of 5 repeats\n" in merged.stdout
        assert merged.returncode == 1
        for way, code in (("repeats", 0), ("none", 1)):
            for which in ("1/2", "2/2"):
                booked.run("--repeats", "2", "--shard", which, "--plan", way)
            few = program.run("history", "merge", "--plan", way, *BASELINE, *IN_FULL, "--confirm", way)
            told = "perhaps by chance: not rerun: nothing can be rerun here, and its repeats do not decide"
            assert (few.returncode, told in few.stdout) == (code, way == "repeats"), few.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--confirm", "none"), "--confirm confirms the regressions of --fail-on"),
        (("--confirm-writes",), "--confirm-writes confirms the regressions of --fail-on"),
        ((*BASELINE, "--confirm", "repeats", "--confirm-writes"), "--confirm repeats makes no reruns"),
    ],
)
def test_options_that_do_not_fit_are_refused(program: Program, words: tuple[str, ...], said: str) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
