"""Runs of cases without expected calls have no score. Every report says so, and names what decided instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conversations import FINAL, SCRIPTED, desk, run

ASKED = '\n[[cases]]\nname = "Ask"\nuser = "Cancel A17."\n'
IN_TURN = SCRIPTED.replace(SCRIPTED[SCRIPTED.index("\n[cases.final]") :], "").replace(
    'id = "number"', 'id = "number"\nresponse = { contains = "Shall" }'
)


@pytest.mark.parametrize(
    ("cases", "decided"),
    [
        (SCRIPTED, "final"),
        (IN_TURN, "turns"),
        (ASKED + 'response_contains = ["open"]\n', "response_contains"),
        (ASKED + 'response = { contains = "open" }\n', "response"),
        (ASKED + 'disallowed = [{ tool = "cancel_order" }]\n', "disallowed"),
        (ASKED + "at_most = { calls = 3 }\n", "at_most"),
        (ASKED + 'duplicate_calls = "forbid"\nresponse_contains = ["open"]\n', "duplicate_calls, response_contains"),
        (ASKED + FINAL.split("[[cases.final.state]]")[0].replace('"47.50"', '"open"'), "final"),
    ],
    ids=["conversation", "turns", "keywords", "answer", "disallowed", "limit", "several", "final"],
)
def test_a_run_without_a_score_says_what_decided(tmp_path: Path, cases: str, decided: str) -> None:
    why = f"the case expects no calls; decided by {decided}"
    with desk(tmp_path, cases) as (program, _):
        [made] = run(program, expected=int(cases.startswith(ASKED) and "changes" in cases))
        assert made["score"] is None
        assert made["grades"][0]["reason"] == why
        for words in (["run", "desk.toml", "--model", "agent", "--trust"], ["history", "show", "1"]):
            done = program.run(*words)
            assert "no score: no case expects what the grader scores" in done.stdout
            assert "not graded" not in done.stdout
        shown = program.run("history", "show", "1", "--run", "1").stdout
        assert "no score" in shown and why in " ".join(shown.split()) and "not graded" not in shown
