"""JUnit XML is read back by an independent reader, and has only elements that its readers know."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given
from junitparser import JUnitXml
from junitparser.xunit2 import JUnitXml as JUnitXml2

from tests.results import result
from tests.show.hostile_texts import HOSTILE, hostile_run, report_on, texts
from tests.tables import each_row
from workbench.evaluation.report import Report
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.show import junit
from workbench.show.junit import junit_pieces
from workbench.show.visible import visible
from workbench.suite.settings import Grading


class Element(NamedTuple):
    """What the schema of Jenkins (xUnit plugin, JUnit 10) lets an element have. In a test case, Jenkins also reads
    properties, and GitLab and the actions of GitHub read `file` and `line`."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    is_text: bool = False

    @property
    def attributes(self) -> frozenset[str]:
        return self.required | self.optional


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OUTCOME = Element(optional=_words("type message"), is_text=True)
_FLAKY = Element(
    required=_words("type"),
    optional=_words("message"),
    children=_words("stackTrace system-out system-err"),
    is_text=True,
)
_OUTPUT = Element(is_text=True)
ELEMENTS = {
    "testsuites": Element(optional=_words("name time tests failures errors"), children=_words("testsuite")),
    "testsuite": Element(
        required=_words("name tests failures errors"),
        optional=_words("time skipped timestamp hostname id package file"),
        children=_words("properties testcase system-out system-err"),
    ),
    "testcase": Element(
        required=_words("name"),
        optional=_words("time classname group file line"),
        children=_words("properties skipped error failure flakyFailure flakyError system-out system-err"),
    ),
    "properties": Element(children=_words("property")),
    "property": Element(required=_words("name value")),
    **dict.fromkeys(("failure", "error", "skipped"), _OUTCOME),
    **dict.fromkeys(("flakyFailure", "flakyError"), _FLAKY),
    **dict.fromkeys(("stackTrace", "system-out", "system-err"), _OUTPUT),
}


def written(*results: RunResult, **more: Any) -> ElementTree.Element:
    """Return the parsed report, after comparing it with an independent reader and checking its counts and elements."""
    return written_by(report_on(*results, **more))


def written_by(report: Report) -> ElementTree.Element:
    text = "".join(junit_pieces(report))
    root = ElementTree.fromstring(text.encode())
    read = list(JUnitXml.fromstring(text.encode()))
    cases = [case for suite in root for case in suite.findall("testcase")]
    assert [case.name for suite in read for case in suite] == [case.get("name") for case in cases]
    assert [case.classname for suite in read for case in suite] == [case.get("classname") for case in cases]
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(attribute, "")) == len(suite.findall(f"testcase/{tag}"))
    assert unknown_in(root) == []
    return root


def unknown_in(element: ElementTree.Element) -> list[str]:
    """Return the parts in and below an element that its readers do not know, and the missing ones."""
    known = ELEMENTS[element.tag]
    names = {*element.attrib}
    found = [f"<{element.tag} {name}>" for name in [*(names - known.attributes), *(known.required - names)]]
    if not known.is_text and (element.text or "").strip():
        found.append(f"text in <{element.tag}>")
    if (time := element.get("time")) is not None and not re.fullmatch(r"\d+\.\d{1,3}", time):
        found.append(f"time {time}")
    for child in element:
        found += unknown_in(child) if child.tag in known.children else [f"<{child.tag}> in <{element.tag}>"]
    return found


def only(root: ElementTree.Element) -> ElementTree.Element:
    (case,) = root.iter("testcase")
    return case


def properties(case: ElementTree.Element) -> dict[str | None, str | None]:
    return {each.get("name"): each.get("value") for each in case.iter("property")}


@each_row(
    ("status", "children", "kind"),
    [
        (Status.PASSED, [], None),
        (Status.WARNED, [], None),
        (Status.FAILED, ["failure"], "failed"),
        (Status.ERROR, ["error"], "infrastructure"),
        (Status.SKIPPED, ["skipped"], "skipped"),
        (Status.STOPPED, ["skipped"], "stopped"),
        (Status.NOT_GRADED, ["skipped"], "not graded"),
    ],
)
def test_each_status_is_what_readers_take_it_for(status: Status, children: list[str], kind: str | None) -> None:
    case = only(written(result(status, 0.5, error="why" if kind not in (None, "failed") else None), lines={"case": 12}))
    assert [child.tag for child in case if child.tag not in ("properties", "system-out")] == children
    assert (case.get("file"), case.get("line")) == ("suite.toml", "12")
    assert (case.get("classname"), case.get("name")) == ("suite.toml [offline]", "Case")
    assert properties(case)["status"] == status
    for child in case:
        if child.tag in children:
            assert child.get("type") == kind
            assert child.text
            assert child.get("message", "") in child.text


def test_a_failure_says_all_issues_in_its_text_because_gitlab_shows_no_message() -> None:
    failure = only(written(hostile_run("Oslo & Rome"))).find("failure")
    assert failure is not None
    assert failure.text
    assert "wrong argument" in failure.text
    assert "expected Oslo & Rome, got Oslo & Rome" in failure.text


def test_a_case_that_passed_although_a_run_failed_is_flaky() -> None:
    majority = Grading(repeat_rule="majority")
    runs = [replace(result(status, 0.5, repeat=place), grading=majority) for place, status in enumerate(_MIXED)]
    case = only(written(*runs))
    flaky = case.findall("flakyFailure")
    assert [each.get("type") for each in flaky] == ["failed"]
    assert flaky[0].findtext("stackTrace") == "by hand"
    assert properties(case)["runs"] == "4"
    text = "".join(junit_pieces(report_on(*runs)))
    suites: Any = JUnitXml2.fromstring(text.encode())
    ((read,),) = suites
    assert len(read.flaky_failures()) == 1


_MIXED: list[Status] = [Status.PASSED, Status.FAILED, Status.PASSED, Status.PASSED]


@pytest.mark.parametrize("quarantined", [False, True])
@pytest.mark.parametrize("others", [Status.PASSED, Status.FAILED])
def test_an_error_of_one_run_stands_there_as_in_the_exit_code(others: Status, quarantined: bool) -> None:
    statuses: list[Status] = [others, Status.ERROR, others]
    runs = [
        replace(result(status, 0.5, repeat=place), grading=Grading(quarantined=quarantined))
        for place, status in enumerate(statuses)
    ]
    root = written(*runs)
    is_failure = others == "failed" and not quarantined
    assert (root.get("failures"), root.get("errors")) == (("1", "0") if is_failure else ("0", "1"))
    error = only(root).find("error")
    assert (error is None) == is_failure
    if error is not None:
        assert error.get("message") == "1 of 3 runs ended in an error"
        assert "run 2: error" in (error.text or "")


_MOSTLY_FAILED: list[Status] = [Status.PASSED, Status.FAILED, Status.FAILED]


def test_a_case_that_failed_says_of_each_run_why() -> None:
    majority = Grading(repeat_rule="majority")
    runs = [replace(result(status, 0.5, repeat=place), grading=majority) for place, status in enumerate(_MOSTLY_FAILED)]
    failure = only(written(*runs)).find("failure")
    assert failure is not None
    assert (failure.text or "").splitlines() == [
        "1 of 3 graded runs passed, by majority, mean score 0.50", "run 2: failed", "  by hand",
        "run 3: failed", "  by hand",
    ]  # fmt: skip


def test_names_that_collide_get_their_ids_since_gitlab_counts_a_name_once() -> None:
    same = [replace(result(Status.PASSED, 1.0, case=f"case-{number}"), case_name="Same") for number in (1, 2)]
    twice = replace(result(Status.PASSED, 1.0, case="case-1"), case_name="Same", run_id="another")
    root = written(*same, twice, result(Status.PASSED, 1.0, case="case-1", model="other"))
    assert [(suite.get("name"), [case.get("name") for case in suite.iter("testcase")]) for suite in root] == [
        ("Suite 0 [offline]", ["Same (case-1)", "Same (case-2)", "Same (case-1) #2"]),
        ("Suite 0 [other]", ["Case-1"]),
    ]


@given(texts)
def test_any_text_is_read_back(text: str) -> None:
    root = written(hostile_run(text), hostile_run(text, Status.ERROR), hostile_run(text, Status.PASSED))
    shown = re.sub("[\ufffe\uffff]", "\ufffd", visible(text or "offline"))
    for case in root.iter("testcase"):
        assert case.get("classname") == f"suite.toml [{shown}]"


def test_long_texts_are_cut_and_say_so() -> None:
    case = only(written(*[hostile_run(HOSTILE[-1])]))
    failure, steps = case.find("failure"), case.findtext("system-out")
    assert failure is not None
    for text, most in ((failure.text, 20_000), (failure.get("message"), 1_000), (steps, 20_000)):
        assert text
        assert len(text) <= most
        assert text.endswith(" … (cut)")


def test_the_steps_are_left_out_of_a_report_that_gitlab_would_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.show.junit._STEPS_MAX", 1)
    root = written(*(hostile_run("x", case=f"case-{number}") for number in range(3)))
    steps = [case.findtext("system-out") for case in root.iter("testcase")]
    assert [text == "the steps are left out: the report would be too large" for text in steps] == [False, True, True]


def test_missed_demands_are_failures_even_if_every_case_passed() -> None:
    report = report_on(result(Status.PASSED, 0.8), result(Status.PASSED, 0.8, model="other"))
    root = written_by(replace(report, min_score=0.9))
    assert root.get("failures") == "2"
    (suite,) = root.findall("testsuite[@name='missed demands']")
    assert [case.get("name") for case in suite] == ["--min-score with offline", "--min-score with other"]
    assert suite[0][0].text == "--min-score with offline: mean score 0.80, 0.9 required: missed"
    assert written_by(replace(report, min_score=0.8)).findall("testsuite[@name='missed demands']") == []


def test_the_repository_of_a_suite_is_found_once_for_all_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(junit, "relative_to_repository", lambda path: asked.append(path) or path)  # type: ignore[func-returns-value]
    written(*(result(Status.PASSED, 1, case=case) for case in "abc"))
    assert asked == ["suite.toml"]


def test_the_writer_loads_few_modules() -> None:
    count = "print(sum(name.startswith('workbench') for name in sys.modules))"
    code = f"import sys, workbench.show.junit; {count}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 31
