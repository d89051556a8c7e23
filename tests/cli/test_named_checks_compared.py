"""Named checks of answers in comparisons of models, new ones and those of the history."""

from __future__ import annotations

import json

from tests.cli.program import Program
from tests.cli.suites import WEATHER

CHECKS = """
[cases.response]
rain = { contains = "Rain", required = false }
snow = { contains = "Snow", required = false }
"""


def test_their_means_are_beside_the_score_and_stay_when_grades_are_made_again(program: Program) -> None:
    program.write("weather.toml", WEATHER + CHECKS)
    words = ("compare", "weather.toml", "--model", "offline,offline:hasty")
    text = program.run(*words, "--format", "text").stdout
    rows = {line.split("  ")[0].strip(): line.split()[1:] for line in text.splitlines() if line.startswith("response.")}
    assert rows == {"response.rain": ["1.00", "1.00"], "response.snow": ["0.00", "0.00"]}, text
    assert program.run("grade", "1").returncode == 0
    stored = json.loads(program.run("compare", "--resume", "1", "--format", "json").stdout)
    assert [model["metrics"] for model in stored["totals"]] == [{"rain": 1.0, "snow": 0.0}] * 2
