"""Every status has all its parts, and no other module repeats them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import workbench
from workbench.grading.status import WORST_FIRST, Status, StatusCounts, counts_of, worst_of

PACKAGE = Path(workbench.__file__).parent

NAMES = {status.value for status in Status}

OTHER_WORDS = {
    "grading/status.py": "the statuses themselves",
    "show/spans.py": "roles",
    "show/text.py": "roles, and the colours of a terminal",
    "tui/terminal/theme.py": "roles, and the colours of a theme",
    "trajectory/events.py": "reasons why runs end, and sources of results",
    "integrations/pytest_plugin/tests.py": "the outcomes of pytest",
}
"""Modules with words that are no statuses, though some are spelled alike."""


def test_every_status_has_all_its_parts() -> None:
    for status in Status:
        assert status.word and status.counted and status.total and status.query, status
        assert len(status.sign) == len(status.ascii) == 1 and status.ascii.isascii(), status
        assert status.meaning or status is Status.PASSED
        assert status.column.isidentifier() and status.total.isidentifier() and " " not in status.query
    for part in ("word", "sign", "ascii", "urgency", "counted", "total", "query", "column"):
        assert len({getattr(status, part) for status in Status}) == len(Status), part


def test_what_is_good_was_graded_and_what_was_graded_was_owed() -> None:
    assert all(status.graded for status in Status if status.good)
    assert all(status.owed and status.final for status in Status if status.graded)
    assert {status for status in Status if status.good} == {Status.PASSED, Status.WARNED}


def test_the_worst_has_the_least_urgency() -> None:
    assert sorted(status.urgency for status in Status) == list(range(len(Status)))
    assert worst_of(Status) is WORST_FIRST[0] is Status.ERROR
    assert worst_of(()) is None


def test_counts_have_an_attribute_for_every_status() -> None:
    counts = StatusCounts()
    counts.counts = counts_of({status: status.urgency for status in Status})
    assert {status: getattr(counts, status.total) for status in Status} == counts.counts


def test_no_other_module_lists_the_names_of_statuses() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        text = path.read_text(encoding="utf-8")
        # A filter by text, because parsing all modules takes seconds.
        if name not in OTHER_WORDS and sum(f'"{each}"' in text for each in NAMES) > 2:
            listed = NAMES.intersection(_decided_by(ast.parse(text)))
            assert len(listed) < 3, f"{name} lists {sorted(listed)}: ask workbench.grading.status.Status"


def test_no_script_of_the_html_report_lists_statuses() -> None:
    for path in sorted((PACKAGE / "show" / "html").glob("*.js")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert sum(f'"{name}"' in line for name in NAMES) < 3, f"{path.name}:{number}"


def _decided_by(tree: ast.Module) -> Iterator[str]:
    """Yield the texts by which a module distinguishes values: compared, matched, looked up or listed texts.

    Roles are passed on instead, so most of their words are not among these."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left, _, others):
                yield from _texts([left, *others])
            case ast.Dict(keys):
                yield from _texts(key for key in keys if key is not None)
            case ast.Tuple(elements) | ast.List(elements) | ast.Set(elements):
                if all(isinstance(element, ast.Constant) for element in elements):
                    yield from _texts(elements)
            case ast.MatchValue(value) | ast.Subscript(slice=value):
                yield from _texts([value])


def _texts(nodes: Iterator[ast.expr] | list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
