"""Judged checks in whole runs with a judge over real HTTP: the requests, their number and their results."""

from __future__ import annotations

import asyncio
import json
import queue
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.cli.suites import WEATHER
from tests.programs import begin, folders_in, program_of
from tests.providers.server import (
    HANG,
    MARK,
    Answer,
    Call,
    Request,
    Server,
    Signal,
    Tell,
    document,
    error_document,
    said,
)
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.config.program import Program
from workbench.config.secrets import NO_SECRETS
from workbench.engine.events import BatchDone, BatchEvent, RunDone
from workbench.engine.judges import JudgementCache, RunJudge
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import plan_runs
from workbench.engine.recordings import (
    RecordingLines,
    Recordings,
    case_of_recording,
    result_of_recording,
    suite_of_recording,
)
from workbench.evaluation.approval import Needs, needs_of
from workbench.evaluation.judges import judge_for
from workbench.evaluation.regrade import RegradingJudges, RunToGrade, regrade
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import Judgement, JudgeUsage, RunResult
from workbench.providers.model import RetryPolicy
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import Usage
from workbench.trajectory.recording import read_recording, recordings_in

HEAD = WEATHER[: WEATHER.index("[[cases]]")]
CASE = """
[[cases]]
name = "Oslo"
user = "What is the weather in Oslo?"
response = { judged = "names the weather" }
[[cases.ordered]]
tool = "get_weather"
args = { city = { judged = "is in Norway" } }
"""
ARGUMENT = CASE.replace('response = { judged = "names the weather" }\n', "")
JUDGE = """
judge = "strict"
[models.strict]
provider = "openai"
model = "m"
base_url = "{url}/v1"
price = {{ input = 1000, output = 10000 }}
"""


def judging(request: Request) -> Answer:
    """Accept only values about Oslo."""
    holds = b"Oslo" in request.body
    return said("openai", calls=[Call("verdict", {"mark": MARK, "rationale": "Seen.", "holds": holds})])


class Place:
    """A folder with a suite, a judge in the user's settings, and a program."""

    def __init__(self, folder: Path, server: Server, suite: str = HEAD + CASE, settings: str = JUDGE) -> None:
        self.folder = folder
        self.server = server
        self.file = folder / "suites" / "weather.toml"
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(suite.format(url=server.url) if "{url}" in suite else suite, encoding="utf-8")
        config = folders_in(folder).config
        config.mkdir(exist_ok=True)
        (config / "workbench.toml").write_text(settings.format(url=server.url), encoding="utf-8")

    @property
    def program(self) -> Program:
        return program_of(self.folder)

    def run(
        self, *, repeats: int = 1, trusted: bool = False, anew: bool = False, record: Path | None = None
    ) -> list[RunResult]:
        events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
        program = self.program
        once = RetryPolicy(attempts=1)
        with closing(Runtime(events.put, program, renew_judgements=anew, retries=once)) as session:
            lines = RecordingLines(program.secrets, lambda: "2026-11-21T00:00:00+00:00")
            begin(
                session,
                plan_runs([load_suite(self.file)], repeats=repeats),
                trusted=trusted,
                record=Recordings(record, lines) if record is not None else None,
            )
            found: list[RunResult] = []
            while not isinstance(event := events.get(timeout=20), BatchDone):
                found += [event.result] if isinstance(event, RunDone) else []
        return found

    def one(self, *, trusted: bool = False, anew: bool = False) -> RunResult:
        [result] = self.run(trusted=trusted, anew=anew)
        return result

    @property
    def asked(self) -> int:
        return len(self.server.requests)


def test_a_judge_decides_says_why_and_its_tokens_are_no_part_of_the_run(tmp_path: Path) -> None:
    with Server(judging) as server:
        result = Place(tmp_path, server).one()
    assert (result.status, result.score) == ("passed", 1.0)
    assert result.grade is not None
    [argument] = result.grade.pairings[0].arguments
    assert (argument.holds, argument.why) == (True, "Seen")
    assert {(each.model, each.criteria, each.holds) for each in result.judgements} == {
        ("strict", "is in Norway", True),
        ("strict", "names the weather", True),
    }
    assert (result.judging.asked, result.judging.usage) == (2, Usage(22, 14))
    assert result.judging.cost_usd == pytest.approx(0.162)
    assert (result.trajectory.usage, result.cost_usd) == (None, 0.0)


def test_what_was_judged_once_is_not_paid_for_again_unless_that_is_wanted(tmp_path: Path) -> None:
    with Server(judging) as server:
        place = Place(tmp_path, server)
        repeats = place.run(repeats=5)
        assert place.asked == 2
        assert sum((result.judging.asked for result in repeats), 0) == 2
        later = place.one()
        assert (place.asked, later.judging) == (2, JudgeUsage())
        assert later.judgements == repeats[0].judgements
        place.one(anew=True)
        assert place.asked == 4


def test_another_model_or_other_params_behind_the_name_are_another_judge(tmp_path: Path) -> None:
    with Server(judging) as server:
        for settings in (JUDGE, JUDGE.replace('"m"', '"n"'), JUDGE + "params = {{ temperature = 0 }}\n"):
            Place(tmp_path, server, settings=settings).one()
        assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("settings", "suite", "why"),
    [
        ("", ARGUMENT, "no judge is chosen: give --judge MODEL"),
        (JUDGE, ARGUMENT.replace('Norway"', 'Norway", model = "offline"'), "offline is not one, so it cannot judge"),
        (JUDGE, ARGUMENT.replace('Norway"', 'Norway", model = "nobody"'), "there is no model 'nobody'"),
        (JUDGE + 'api_key_env = "JUDGE_KEY"\n', ARGUMENT, "JUDGE_KEY is not set"),
        (JUDGE, ARGUMENT.replace('Norway"', 'Norway", model = "openai:m@{url}/v1"'), "weather.toml is not trusted"),
    ],
)
def test_without_a_judge_a_run_is_an_error_that_says_the_way_out(
    tmp_path: Path, settings: str, suite: str, why: str
) -> None:
    with Server(judging) as server:
        if "{url}" in suite:
            suite = suite.replace("{url}", server.url)
        result = Place(tmp_path, server, HEAD + suite, settings).one()
        assert server.requests == []
    assert result.status == "error"
    assert result.error is not None
    assert result.error.startswith("get_weather.city: the check 'judged: is in Norway' cannot be judged: ")
    assert why in result.error
    assert result.grades == ()


def test_a_judge_that_talks_rubbish_is_an_error_counted_and_not_remembered(tmp_path: Path) -> None:
    with Server(lambda _request: said("openai", "Fine, I guess.")) as server:
        place = Place(tmp_path, server)
        result = place.one()
        assert (result.status, result.judgements) == ("error", ())
        assert "the model's answer is not a verdict (Fine, I guess.)" in (result.error or "")
        assert (result.judging.asked, result.judging.usage) == (2, Usage(22, 14))
        place.one()
        assert place.asked == 4


def test_a_judge_that_is_down_spoils_only_the_grades_that_need_it(tmp_path: Path) -> None:
    recorded = CASE.replace('Norway"', 'Norway", weight = 0').replace(
        'response = { judged = "names the weather" }\n', ""
    )
    with Server(lambda _request: document(error_document("openai", "down"), 503)) as server:
        result = Place(tmp_path, server, HEAD + recorded).one()
        assert len(server.requests) == 1
    verdicts = {grade.grader: grade.verdict for grade in result.grades}
    assert (result.status, verdicts["critics"], verdicts["decision"]) == ("passed", "passed", "error")
    assert (result.judging.asked, result.judging.usage) == (1, None)


def test_a_judge_that_a_suite_names_needs_trust_like_any_model_of_it(tmp_path: Path) -> None:
    with Server(judging) as server:
        of_suite = CASE.replace('Norway"', f'Norway", model = "openai:m@{server.url}/v1"')
        place = Place(tmp_path, server, HEAD + of_suite)
        needs = needs_of(load_suite(place.file), ModelSpecs(place.program.models, place.program.environment))
        assert [model.url for model in needs.models] == [f"{server.url}/v1"]
        assert place.one(trusted=True).status == "passed"
        # The same holds for a choice in a workbench.toml beside the suite.
        (place.file.parent / "workbench.toml").write_text(f'judge = "openai:m@{server.url}/v1"\n')
        place.file.write_text(HEAD + CASE)
        assert "is not trusted" in (place.one(anew=True).error or "")


def test_a_run_can_be_stopped_while_its_judge_thinks(tmp_path: Path) -> None:
    asked = Signal()
    with Server([Answer(before=(Tell(asked), HANG))]) as server:
        place = Place(tmp_path, server)
        events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
        with closing(Runtime(events.put, place.program)) as session:
            begin(session, plan_runs([load_suite(place.file)]), trusted=False)
            asked.wait()
            session.stop_all()
            while not isinstance(event := events.get(timeout=20), RunDone):
                pass
    assert (event.result.status, event.result.grades) == ("stopped", ())


MOCKED = HEAD.replace('result = "Rain in {city}"', 'result = "Rain"\nwhen = { city = { judged = "is in Norway" } }') + (
    ARGUMENT.replace('{ judged = "is in Norway" }', '"Oslo"')
)


def test_a_mock_whose_condition_is_judged_has_the_judge_asked_during_the_run(tmp_path: Path) -> None:
    with Server(judging) as server:
        place = Place(tmp_path, server, MOCKED)
        result = place.one()
        assert result.trajectory.calls[0].result is not None
        assert result.trajectory.calls[0].result.content == "Rain"
        assert (place.asked, [each.criteria for each in result.judgements]) == (1, ["is in Norway"])
        other = Place(tmp_path, server, MOCKED.replace("weather in Oslo", "weather in Rome")).one()
        assert other.trajectory.calls[0].result is not None
        assert other.trajectory.calls[0].result.source == "default"


def test_a_mock_that_cannot_be_judged_ends_the_run_as_an_error(tmp_path: Path) -> None:
    with Server(judging) as server:
        result = Place(tmp_path, server, MOCKED, "").one()
    assert result.status == "error"
    assert "the condition of a mock for 'get_weather' cannot be evaluated: " in (result.error or "")
    assert "no judge is chosen" in (result.error or "")


def judges_of(runs: Iterable[RunToGrade], program: Program, chosen: str | None) -> RegradingJudges:
    """Return the judges for a user who trusts none of the suites."""
    proposal = Needs.of_grading([(run.file, run.case) for run in runs], program, judges=chosen is not None)
    return RegradingJudges(program, proposal.approved(()), chosen)


def regraded(folder: Path, program: Program, chosen: str | None = None, edit: Callable[[str], str] = str) -> RunResult:
    [path] = recordings_in(folder)
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    recording = read_recording(path)
    file = suite_of_recording(recording)
    run = RunToGrade(recording, result_of_recording(recording), file, case_of_recording(recording, file))
    [result] = asyncio.run(regrade([run], judges_of([run], program, chosen)))
    return result


def test_a_recording_is_graded_again_elsewhere_without_asking_anybody(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    with Server(judging) as server:
        [before] = Place(tmp_path, server).run(record=runs)
        elsewhere = program_of(tmp_path / "elsewhere")
        after = regraded(runs, elsewhere)
        assert (after.status, after.grades, after.judgements) == (before.status, before.grades, before.judgements)
        reworded = regraded(runs, elsewhere, edit=lambda text: text.replace("is in Norway", "is a capital", 1))
        assert "this value has not been judged, and no judge is asked here" in (reworded.error or "")
        assert len(server.requests) == 2
        again = regraded(runs, Place(tmp_path, server).program, "strict")
        assert (again.status, again.judging.asked, len(server.requests)) == ("passed", 1, 3)


def test_recordings_are_judged_side_by_side_and_what_is_alike_once(tmp_path: Path) -> None:
    one, both = Signal(), Signal()
    waits = iter([(Tell(one), both), (Tell(both), one)])

    def together(request: Request) -> Answer:
        return replace(judging(request), before=next(waits))

    with Server(judging) as server:
        place = Place(tmp_path, server, HEAD + ARGUMENT + ARGUMENT.replace("Oslo", "Rome"))
        place.run(repeats=3, record=tmp_path)
    with Server(together) as server:
        recordings = [read_recording(path) for path in recordings_in(tmp_path)]
        files = [suite_of_recording(recording) for recording in recordings]
        runs = [
            RunToGrade(recording, result_of_recording(recording), file, case_of_recording(recording, file))
            for recording, file in zip(recordings, files, strict=True)
        ]
        other = Place(tmp_path, server, settings=JUDGE.replace("strict", "other")).program
        results = asyncio.run(regrade(runs, judges_of(runs, other, "other")))
        assert len(server.requests) == 2
    assert [result.run_id for result in results] == [recording.header.run for recording in recordings]
    assert {(result.case_id, result.status) for result in results} == {("oslo", "passed"), ("rome", "failed")}


def test_an_older_recording_has_no_judgements_and_is_read_all_the_same(tmp_path: Path) -> None:
    with Server(judging) as server:
        Place(tmp_path, server).run(record=tmp_path)
    [path] = recordings_in(tmp_path)
    *lines, last = path.read_text(encoding="utf-8").splitlines()
    result = json.loads(last)
    assert len(result["result"].pop("judgements")) == 2
    path.write_text("\n".join((*lines, json.dumps(result))), encoding="utf-8")
    assert result_of_recording(read_recording(path)).judgements == ()


def test_rescoring_knows_a_runs_judgements_and_what_is_remembered_and_asks_nobody(tmp_path: Path) -> None:
    with Server(judging) as server:
        place = Place(tmp_path, server)
        place.one()
        program = place.program
        cache = JudgementCache(program.folders.judgements, NO_SECRETS)
        own = Judgement("strict", "is in Norway", '"Rome"', False, "No.")
        spec_of = partial(judge_for, folder=place.file.parent, models=program.models)
        judge = RunJudge(spec_of, cache, recorded=[own]).known_judgement
        check = Judged(judged="is in Norway")
        assert (judge(check, "Rome").holds, judge(check, "Oslo").holds) == (False, True)
        with pytest.raises(CheckError, match="no judge is asked here"):
            judge(check, "Bergen")
        assert place.asked == 2
