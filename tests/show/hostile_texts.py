"""Texts of models, tools and suites that attack a format of reports, and reports with these texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from tests.grading.cases import call, case_of
from tests.results import result
from tests.trajectories import trajectory_of
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.evaluation.plan import FinishedRun
from workbench.evaluation.report import Report
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.suite.model import Case, Suite

HOSTILE = (
    "]]><script>alert(1)</script><![CDATA[",
    "</failure></testcase>&bogus;&#0;",
    '" onload="x',
    "=HYPERLINK(\"http://evil.test\",\"x\")",
    "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1",
    "##[error]gone", "::error file=x::gone", "say ##[add-mask]x", "\n::add-mask::x\n::stop-commands::y",
    "```\n# heading\n```", "~~~", "<details><summary>x</summary>", "</details>", "@everyone #1 GH-1 owner/repo#2",
    "[click](javascript:alert(1)) ![x](http://evil.test/x.png) <img src=x onerror=y>",
    "https://evil.test www.evil.test",
    "a|b\\|c", ":boom: $x^2$", "\x00\x07\x1b[31mred\x1b]0;title\x07", "\u202eright to left\u2066", "\ufffe\uffff\ud800",
    "a\u2028b\u2029c\x85d", "", " ", "x" * 70_000,
)  # fmt: skip
"""Texts that some reader of a report would mistake for markup or a command."""

_SHORT = [text for text in HOSTILE if len(text) < 1000]

texts: st.SearchStrategy[str] = st.one_of(
    st.sampled_from(_SHORT),
    st.text(st.characters(), max_size=30),
    st.builds("{}{}".format, st.text(max_size=5), st.sampled_from(_SHORT)),
)


def hostile_run(text: str, status: Status = Status.FAILED, **more: str | int) -> RunResult:
    """Return a run whose suite, model, tool and answer all have the same text."""
    grade = None
    if status is Status.PASSED or status is Status.WARNED or status is Status.FAILED:
        issues = (Issue("wrong argument", text, text, 0, 0, text, text, text),) if status is Status.FAILED else ()
        grade = Grade("critics", 0.25, status, text, issues=issues)
    made = trajectory_of((text or "t", {text: [text]}), answer=text)
    named = {"case": text or "case", "model": text or "offline", "suite": "suite.toml"} | more
    return result(status, 0.5, error=text if grade is None else None, grade=grade, trajectory=made, **named)  # type: ignore[arg-type]


def report_on(
    *results: RunResult,
    cases: Mapping[str, Case] | None = None,
    lines: Mapping[str, int] | None = None,
    names: Sequence[str] = (),
    secrets: Secrets = NO_SECRETS,
) -> Report:
    """Return the report on some runs. `cases` and `lines` are by case id, `names` are the names of the suites."""
    case = case_of(call("get_weather", {"city": "Oslo"}))
    paths = dict.fromkeys(each.suite for each in results)
    names = [name.encode(errors="replace").decode() for name in names]  # a file holds nothing else
    named = dict(zip(paths, [*names, *(f"Suite {number}" for number in range(len(paths)))], strict=False))
    return Report(
        runs=tuple(
            FinishedRun(place, (cases or {}).get(each.case_id, case), each) for place, each in enumerate(results)
        ),
        suites={path: Suite(format=1, name=name, cases=(case,)) for path, name in named.items()},
        started_at="2026-01-01T00:00:00+00:00",
        line_of=lambda _, case_id: (lines or {}).get(case_id),
        secrets=secrets,
    )
