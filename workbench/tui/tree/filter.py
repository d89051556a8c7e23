"""The filter of the tree: every word must be in a case's name, id, tags or messages, or in its suite's name or tags.

Typing errors are tolerated.

A word that occurs somewhere in the tree is matched exactly; only an unknown one matches similar words. `status:…` and
`tag:…` filter by status and tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.authoring.case_list import CaseKey
from workbench.authoring.document import HEAD, CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.grading.status import Status
from workbench.suite.render import Table
from workbench.tui.run_book.summaries import CaseSummary
from workbench.tui.tree.rows import Row, SuiteRows

STATUS, TAG = "status:", "tag:"
"""The prefixes of words that filter by status or tag."""

MIN_GUESSED_CHARS = 3
"""The minimum length of a word for similar matches."""

LIKENESS = 74.0
"""The minimum similarity, of 100: one wrong letter of four, two of eight."""

SPREAD = 10.0
"""Words are dropped if they are this much less similar than the best one."""

MAX_NEAR = 50
"""The maximum number of similar words."""

_WORD = re.compile(r"\w+")

_Texts = list[tuple[int, str]]
"""Cases of one suite that still match: their indices and texts."""


class Search:
    """An index of the tree: the texts of its cases, prepared for fast search."""

    def __init__(self) -> None:
        self._texts: dict[SuiteRows, tuple[str, list[tuple[Row, Table]], list[str]]] = {}
        self._words: list[str] | None = None

    def forget(self) -> None:
        """Clear the index, because suites came or went."""
        self._texts = {}
        self._words = None

    def found(self, suites: Sequence[SuiteRows], text: str) -> dict[Path, list[Row]]:
        """Return the rows of the cases that match a filter, by suite."""
        left: list[_Texts] = [list(enumerate(self._of(suite))) for suite in suites]
        words = [word for word in text.casefold().split() if not word.startswith(STATUS)]
        for tag in (word.removeprefix(TAG) for word in words if word.startswith(TAG)):
            left = [
                [(at, message) for at, message in texts if _has_tag(suite, suite.cases[at], tag)]
                for suite, texts in zip(suites, left, strict=True)
            ]
        for word in (word for word in words if not word.startswith(TAG)):
            exact = [[(at, message) for at, message in texts if word in message] for texts in left]
            left = exact if any(exact) or self._stands_somewhere(suites, word) else self._nearly(suites, left, word)
        return {
            suite.suite.path: [suite.cases[at] for at, _ in texts] for suite, texts in zip(suites, left, strict=True)
        }

    def _of(self, rows: SuiteRows) -> list[str]:
        """Return the case-folded texts of a suite's cases.

        Only those of changed rows are built again."""
        named, document = _named(rows.suite), rows.suite.document
        now = [(row, document.table(row.case.index) if row.case is not None else {}) for row in rows.cases]
        known = self._texts.get(rows)
        old, known_texts = (known[1], known[2]) if known is not None and known[0] == named else ([], [])
        texts = [
            known_texts[at] if at < len(old) and old[at][0] is row and old[at][1] is table else _text(row, table, named)
            for at, (row, table) in enumerate(now)
        ]
        self._texts[rows] = (named, now, texts)
        if texts != known_texts:
            self._words = None
        return texts

    def _stands_somewhere(self, suites: Sequence[SuiteRows], word: str) -> bool:
        return any(word in text for suite in suites for text in self._of(suite))

    def _nearly(self, suites: Sequence[SuiteRows], left: list[_Texts], word: str) -> list[_Texts]:
        near = self._near(suites, word)
        return [[(at, text) for at, text in texts if any(found in text for found in near)] for texts in left]

    def _near(self, suites: Sequence[SuiteRows], word: str) -> list[str]:
        """Return the words of the tree that are most similar to an unknown word."""
        if len(word) < MIN_GUESSED_CHARS or ":" in word:
            return []
        from rapidfuzz import fuzz, process  # only needed for similar words

        if self._words is None:
            text = "\n".join("\n".join(self._of(suite)) for suite in suites)
            self._words = list(dict.fromkeys(_WORD.findall(text)))
        shortest = len(word) - max(len(word) // 4, 1)
        candidates = [known for known in self._words if len(known) >= shortest]
        scored = process.extract(word, candidates, scorer=fuzz.partial_ratio, score_cutoff=LIKENESS, limit=MAX_NEAR)
        return [known for known, score, _ in scored if score >= scored[0][1] - SPREAD]


def with_status(
    suites: Sequence[SuiteRows], text: str, summary_of: Callable[[CaseKey], CaseSummary]
) -> frozenset[CaseKey] | None:
    """Return the cases that match the `status:` words of a filter, `None` if it has none.

    What follows may be the beginning of a status, or of `running`, `never` (run), `unsaved`, `broken` or `disagree`
    (the graders do).
    """
    asked = [word.removeprefix(STATUS) for word in text.casefold().split() if word.startswith(STATUS)]
    if not asked:
        return None
    tests = [[test for name, test in _TESTS.items() if name.startswith(word)] for word in asked]
    found: set[CaseKey] = set()
    for rows in suites:
        for row in rows.cases:
            assert row.case is not None
            summary = summary_of((rows.suite.path, row.case.key))
            if all(any(test(rows.suite, row.case, summary) for test in any_of) for any_of in tests):
                found.add((rows.suite.path, row.case.key))
    return frozenset(found)


def _named(suite: OpenSuite) -> str:
    read = suite.file.suite
    if read is not None:
        return f"{suite.path.stem} {read.name} {' '.join(read.tags)}".casefold()
    header = suite.document.table(HEAD) if suite.cases else {}
    tags = header.get("tags")
    text = " ".join(map(str, tags)) if isinstance(tags, list) else ""
    return f"{suite.path.stem} {header.get('name', '')} {text}".casefold()


def _text(row: Row, table: Table, named: str) -> str:
    case = row.case
    if case is None:
        return named
    steps = table.get("steps")
    parts = [table, *(step for step in (steps if isinstance(steps, list) else ()) if isinstance(step, dict))]
    messages = " ".join(str(part["user"]) for part in parts if "user" in part)
    return f"{named} {case.name} {case.id} {' '.join(case.tags)} {messages}".casefold()


def _has_tag(suite: SuiteRows, row: Row, wanted: str) -> bool:
    """Return whether a case or its suite has a tag that begins like this."""
    of_suite = suite.suite.document.table(HEAD).get("tags")
    tags = [*(row.case.tags if row.case is not None else ()), *(of_suite if isinstance(of_suite, list) else ())]
    return any(str(tag).casefold().startswith(wanted) for tag in tags)


def advice(text: str) -> str | None:
    """Return a sentence about the first word of a filter that looks like `status:failed` and is not known, or is a
    status without `status:`, if any."""
    for word in text.casefold().split():
        name, colon, value = word.partition(":")
        if word.startswith(STATUS) and not any(known.startswith(value) for known in _TESTS):
            return f"{word} is not known; a status is {', '.join(_TESTS)}."
        if colon and name.isalpha() and f"{name}:" not in (STATUS, TAG):
            return f"{name}: is not known here; status: and tag: are."
        if word in _TESTS:
            return f"{word} is looked for in the texts of cases; {STATUS}{word} filters by status."
    return None


_Test = Callable[[OpenSuite, CaseOutline, CaseSummary], bool]


def _ended(status: Status) -> _Test:
    return lambda suite, case, summary: summary.status is status


_TESTS: dict[str, _Test] = {
    **{status.query: _ended(status) for status in Status},
    Status.SKIPPED.query: lambda suite, case, summary: case.skip is not None or summary.status is Status.SKIPPED,
    "running": lambda suite, case, summary: summary.stage in ("waiting", "running"),
    "never": lambda suite, case, summary: summary.status is None and case.skip is None,
    "unsaved": lambda suite, case, summary: suite.is_changed(case.index),
    "broken": lambda suite, case, summary: case.index in suite.broken_cases,
    "disagree": lambda suite, case, summary: summary.disagree,
}
