"""The real Evalite as the measure: its scorer on random calls, and its file of results.

`EVALITE_FOLDER` names a folder in which `npm install evalite@1.0.0-beta.16 vitest@4 ai@6 zod@4 --legacy-peer-deps` ran.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.slow

SCORE = """
import { toolCallAccuracy } from "evalite/scorers/deterministic";
const rows = JSON.parse(process.argv[1]);
const scores = [];
for (const row of rows)
  scores.push((await toolCallAccuracy({ actualCalls: row.output, expectedCalls: row.expected, mode: row.mode })).score);
console.log(JSON.stringify(scores));
"""
EVAL = """
import { evalite } from "evalite";
import { contains, toolCallAccuracy } from "evalite/scorers";
const rows: any[] = ROWS;
evalite("Random", {
  data: rows.map((row) => ({ input: row.input, expected: row.expected })),
  task: async (input) => rows.find((row) => row.input === input).output,
  scorers: [{ scorer: ({ output, expected }) => toolCallAccuracy({ actualCalls: output, expectedCalls: expected! }) }],
});
evalite("Texts", {
  data: [{ input: "Capital?", expected: "Oslo" }],
  task: async () => "It is Oslo.",
  scorers: [{ scorer: ({ output, expected }) => contains({ actual: output, expected: expected! }) }],
});
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture(scope="module")
def evalite() -> Path:
    folder = Path(os.environ.get("EVALITE_FOLDER", "."))
    if shutil.which("node") is None or not (folder / "node_modules" / "evalite").is_dir():
        pytest.skip("EVALITE_FOLDER names no folder with Evalite and node")
    return folder


def ran(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(mode: str) -> list[dict[str, Any]]:
    chance = random.Random(mode)

    def calls(most: int, always: bool) -> list[dict[str, Any]]:
        made = []
        for _ in range(chance.randint(0, most)):
            call: dict[str, Any] = {"toolName": chance.choice("abc")}
            # In flexible mode, Evalite treats a missing input as an empty one. The page names this deviation.
            if always or mode == "flexible" or chance.random() < 0.7:
                call["input"] = {"x": chance.randint(0, 1), "deep": [{"y": chance.choice(["1", 1, True])}]}
            made.append(call)
        return made

    rows = []
    for number in range(60):
        rows.append({"input": f"{mode} {number}", "expected": calls(3, False), "output": calls(4, True), "mode": mode})
    return rows


@pytest.mark.parametrize("mode", ["exact", "flexible"])
def test_a_table_of_expected_calls_scores_as_evalite_s_scorer(evalite: Path, program: Program, mode: str) -> None:
    rows = rows_of(mode)
    scores = json.loads(ran(evalite, "node", "--input-type=module", "-e", SCORE, json.dumps(rows)))
    program.write("rows.json", json.dumps([{key: row[key] for key in ("input", "expected")} for row in rows]))
    fields = "user=input,id=input,tool=expected.toolName,args=expected.input"
    assert program.run("import", "rows.json", "--map", fields, "-o", "suite.toml").returncode == 0
    suite = (program.folder / "suite.toml").read_text()
    if mode == "flexible":
        suite = suite.replace("[[cases.ordered]]", "[[cases.unordered]]")
    grading = f'[grading]\nby = "accuracy"\naccuracy.mode = "{mode}"\n\n[[cases]]'
    program.write("suite.toml", suite.replace("[[cases]]", grading, 1))
    made = [{"case": row["input"], "toolCalls": row["output"], "text": ""} for row in rows]
    program.write("calls.jsonl", "".join(f"{json.dumps(run)}\n" for run in made))
    program.run("grade", "--suite", "suite.toml", "--calls", "calls.jsonl", "--report", "report.json")
    report = json.loads((program.folder / "report.json").read_text())
    graded = {run["case_id"]: run["score"] for run in report["runs"]}
    assert [graded[row["input"]] for row in rows] == pytest.approx(scores)


def test_results_of_a_run_import_with_their_scores(evalite: Path, program: Program, tmp_path: Path) -> None:
    file = evalite / f"{tmp_path.name}.eval.ts"
    file.write_text(EVAL.replace("ROWS", json.dumps(rows_of("exact"))))
    try:
        ran(evalite, "npx", "evalite", "run", file.name, "--outputPath", str(program.folder / "results.json"))
    finally:
        file.unlink()
    done = program.run("import", "results.json", "--recordings", "runs")
    assert "61 runs in runs" in done.stdout, done.stdout
    program.run("grade", "runs", "--report", "report.json")
    for run in json.loads((program.folder / "report.json").read_text())["runs"]:
        (theirs,) = [metric["value"] for metric in run["metrics"] if metric["name"] == "score of Evalite"]
        assert run["score"] == pytest.approx(theirs), run["case_id"]
