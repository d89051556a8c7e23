"""Judged checks on the command line: `run --judge`, messages without a judge, and `grade`, which asks no judge."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import MARK, Answer, Call, Request, Server, document, error_document, said

HEAD = WEATHER[: WEATHER.index("[[cases]]")]
CASE = """
[[cases]]
name = "Polite"
user = "What is the weather in Oslo?"
response = { judged = "is polite" }
"""


def judging(request: Request) -> Answer:
    arguments = {"mark": MARK, "rationale": "It gives an order.", "holds": b"is polite" not in request.body}
    return said("openai", calls=[Call("verdict", arguments)])


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(judging) as serving:
        yield serving


def judge_at(server: Server, name: str = "m") -> str:
    return f"openai:{name}@{server.url}/v1"


def test_a_judge_given_with_the_command_needs_no_trust_and_its_reason_is_the_issues(
    program: Program, server: Server
) -> None:
    program.write("weather.toml", HEAD + CASE)
    done = program.run("run", "weather.toml", "--judge", judge_at(server), "--verbose")
    assert done.returncode == 1
    assert "(It gives an order; this alone fails the case)" in done.stdout
    assert f'judged by {judge_at(server)}: "is polite" does not hold: It gives an order.' in done.stdout
    assert "  judging: 1 question · 11 tokens in, 7 out\n" in done.stdout
    assert "tokens in" not in done.stdout.replace("11 tokens in", "")
    anew = ("--format", "json", "--no-judge-cache")
    report = json.loads(program.run("run", "weather.toml", "--judge", judge_at(server), *anew).stdout)
    [judgement] = report["runs"][0]["judgements"]
    assert (judgement["criteria"], judgement["holds"], judgement["rationale"]) == (
        "is polite",
        False,
        "It gives an order.",
    )
    assert (report["totals"]["judging"]["asked"], report["totals"]["usage"]) == (1, None)
    assert len(server.requests) == 2


def test_grading_again_asks_nobody_unless_a_judge_is_given(program: Program, server: Server) -> None:
    suite = program.write("weather.toml", HEAD + CASE)
    program.run("run", "weather.toml", "--judge", judge_at(server), "--record", "runs")
    suite.write_text(HEAD + CASE.replace("is polite", "names a city"))
    reworded = ("grade", "runs", "--suite", "weather.toml")
    assert "no judge is asked here: give --judge MODEL" in program.run(*reworded).stdout
    assert len(server.requests) == 1
    done = program.run(*reworded, "--judge", judge_at(server))
    assert (done.returncode, len(server.requests)) == (0, 2)
    assert "failed → passed" in done.stdout


def test_a_check_in_a_recording_that_names_an_endpoint_is_asked_about_before_it_judges(
    program: Program, server: Server
) -> None:
    own = CASE.replace('polite"', f'polite", model = "{judge_at(server, "own")}"')
    program.write("weather.toml", HEAD + own)
    program.run("run", "weather.toml", "--trust", "--record", "runs")
    (program.folder / "state" / "toolcall-workbench" / "judgements.jsonl").unlink()
    [recording] = (program.folder / "runs").iterdir()
    recording.write_text(recording.read_text().replace("is polite", "is kind", 1))
    refused = program.run("grade", "runs", "--judge", judge_at(server))
    assert refused.returncode == 2
    assert f"ask the model own at {server.url}/v1" in refused.stderr
    assert len(server.requests) == 1
    assert program.run("grade", "runs", "--judge", judge_at(server), "--trust").returncode == 0
    assert len(server.requests) == 2


def test_one_question_about_trust_is_for_all_recordings_and_about_the_one_model_that_would_judge(
    program: Program, server: Server
) -> None:
    program.write("weather.toml", HEAD + CASE)
    program.run("run", "weather.toml", "--repeats", "4", "--record", "runs")
    model = '[models.{name}]\nprovider = "openai"\nmodel = "{name}"\nbase_url = "{url}/v1"\n'
    names = ("strict", "mild", "other")
    settings = "".join(model.format(name=name, url=server.url) for name in names)
    program.write("runs/workbench.toml", settings)
    refused = program.run("grade", "runs", "--judge", "strict")
    assert refused.returncode == 2
    assert refused.stderr.count("allows it, on this machine") == 1
    assert "and 3 others like it allows it" in refused.stderr
    assert f"  ask the model strict at {server.url}/v1\n" in refused.stderr
    assert "mild" not in refused.stderr
    done = program.run("grade", "runs", "--judge", "strict", "--trust")
    assert (done.returncode, len(server.requests)) == (1, 1)


def test_it_is_shown_that_a_judge_is_asked_and_that_it_is_asked_again(program: Program) -> None:
    down = iter([document(error_document("openai", "down"), 503, {"retry-after": "0"})])
    program.write("weather.toml", HEAD + CASE)
    with Server(lambda request: next(down, None) or judging(request)) as server:
        judge = judge_at(server)
        shown = program.run("run", "weather.toml", "--judge", judge).stdout
        quiet = program.run("run", "weather.toml", "--judge", judge, "--quiet", "--no-judge-cache").stdout
    assert f"asking the judge {judge} about 1 value\n" in shown
    assert f"▲ the judge {judge}: " in shown
    assert "↻ retry 2 in " in shown
    assert "asking the judge" not in quiet


def test_without_a_judge_it_is_said_before_anything_runs_and_by_validate(program: Program) -> None:
    program.write("weather.toml", HEAD + CASE)
    warning = "weather.toml: warning: not all of its checks can be judged: no judge is chosen: give --judge MODEL"
    for words in (("run", "weather.toml"), ("validate", "weather.toml")):
        assert warning in program.run(*words).stderr
    program.write("weather.toml", HEAD + CASE.replace('polite"', 'polite", model = "offline"'))
    done = program.run("validate", "weather.toml")
    assert 'cases[0].response.model of "Polite": "offline" cannot judge: it is not a language model' in done.stderr
    assert "1 warning\n" in done.stdout


@pytest.mark.parametrize("judge", ["offline", "nobody"])
def test_a_judge_that_cannot_be_one_is_wrong_usage(program: Program, judge: str) -> None:
    program.write("weather.toml", HEAD + CASE)
    done = program.run("run", "weather.toml", "--judge", judge)
    assert done.returncode == 2
    assert done.stdout == ""
    assert (
        "offline is not one, so it cannot judge" in done.stderr
        or "there is no model 'nobody': name it in" in done.stderr
    )


def test_the_judges_of_suites_and_settings_are_listed_among_the_models(program: Program) -> None:
    program.write("weather.toml", HEAD + CASE.replace('polite"', 'polite", model = "openai:own"'))
    program.write("workbench.toml", 'judge = "openai:chosen"\n')
    listed = program.run("models").stdout
    assert "openai:own" in listed
    assert "openai:chosen" in listed
