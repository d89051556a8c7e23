"""The filter of the tree.

Every word must be in a case's name, id, tags or messages, or in the name or tags of its suite. A word that occurs
anywhere in the tree is matched exactly. Any other word also matches similar words, so a case is found despite a typing
error. `status:…` and `tag:…` filter by status and tag. The name of a status filters by this status. In quotation marks,
the name is an ordinary word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path

from workbench.authoring.case_list import CaseKey
from workbench.authoring.document import HEAD, CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.startup import late_pattern
from workbench.suite.render import Table
from workbench.tui.run_book.summaries import CaseSummary
from workbench.tui.tree.rows import Row, SuiteRows

STATUS, TAG = "status:", "tag:"
"""The prefixes of words that filter by status or tag."""

MIN_GUESSED_CHARS = 3
"""The minimum length of a word for similar matches."""

MIN_SIMILARITY = 74.0
"""The minimum similarity, out of 100. It allows one wrong letter of four, or two of eight."""

MAX_SIMILARITY_SPREAD = 10.0
"""The maximum difference in similarity between the best similar word and another accepted word."""

MAX_SIMILAR_WORDS = 50
"""The maximum number of similar words."""

_WORD = late_pattern(r"\w+")

_Texts = list[tuple[int, str]]
"""The matching cases of one suite: indices and texts."""


@dataclass
class _SuiteTexts:
    """The search texts of a suite's cases, with the rows and TOML tables from which they were built."""

    named: str
    cases: list[tuple[Row, Table]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class Search:
    """An index of the tree: the texts of its cases, prepared for fast search."""

    def __init__(self) -> None:
        self._texts: dict[SuiteRows, _SuiteTexts] = {}
        self._words: list[str] | None = None

    def forget(self) -> None:
        """Clear the index after suites were added or removed."""
        self._texts = {}
        self._words = None

    def found(self, suites: Sequence[SuiteRows], text: str) -> dict[Path, list[Row]]:
        """Return the rows of the cases that match a filter, by suite."""
        left = [list(enumerate(self._texts_of(suite))) for suite in suites]
        tags: list[str] = []
        words: list[str] = []
        for word in text.casefold().split():
            if word.startswith(TAG):
                tags.append(word.removeprefix(TAG))
            elif not word.startswith(STATUS) and word not in _TESTS:
                words.append(_unquoted(word))
        # Tags are matched first, because they leave fewer texts for the slower search of words.
        for tag in tags:
            left = _with_tag(suites, left, tag)
        for word in words:
            left = self._with_word(suites, left, word)
        found: dict[Path, list[Row]] = {}
        for suite, texts in zip(suites, left, strict=True):
            found[suite.suite.path] = [suite.cases[at] for at, _ in texts]
        return found

    def _texts_of(self, rows: SuiteRows) -> list[str]:
        """Return the case-folded texts of a suite's cases. Only texts of changed cases are rebuilt."""
        suite = rows.suite
        named = _named(suite)
        known = self._texts.get(rows)
        if known is None or known.named != named:
            known = _SuiteTexts(named)
        texts = _SuiteTexts(named)
        for at, row in enumerate(rows.cases):
            table: Table = {}
            if row.case is not None:
                table = suite.document.table(row.case.index)
            texts.cases.append((row, table))
            # An edit makes a new row or a new table, so identity shows which cases changed.
            if at < len(known.cases) and known.cases[at][0] is row and known.cases[at][1] is table:
                texts.texts.append(known.texts[at])
            else:
                texts.texts.append(_text(row, table, named))
        self._texts[rows] = texts
        if texts.texts != known.texts:
            self._words = None
        return texts.texts

    def _all(self, suites: Sequence[SuiteRows]) -> Iterator[str]:
        for suite in suites:
            yield from self._texts_of(suite)

    def _with_word(self, suites: Sequence[SuiteRows], candidates: list[_Texts], word: str) -> list[_Texts]:
        """Keep the texts that contain a word.

        If no text in the tree contains the word, keep texts with a similar word."""
        exact = _keep_matching(candidates, lambda text: word in text)
        # A word that occurs anywhere in the tree is not a typing error, even if other words of the filter exclude its
        # cases.
        if any(exact) or any(word in text for text in self._all(suites)):
            return exact
        similar = self._similar(suites, word)
        return _keep_matching(candidates, lambda text: any(known in text for known in similar))

    def _similar(self, suites: Sequence[SuiteRows], word: str) -> list[str]:
        if len(word) < MIN_GUESSED_CHARS or ":" in word:
            return []
        from rapidfuzz import fuzz, process  # only needed for similar words

        if self._words is None:
            self._words = list(dict.fromkeys(_WORD.findall("\n".join(self._all(suites)))))
        # `partial_ratio` looks for the shorter text in the longer one. Without a minimum length, every short word that
        # is part of the typed word would score 100.
        shortest = len(word) - max(len(word) // 4, 1)
        candidates = [known for known in self._words if len(known) >= shortest]
        scored = process.extract(
            word, candidates, scorer=fuzz.partial_ratio, score_cutoff=MIN_SIMILARITY, limit=MAX_SIMILAR_WORDS
        )
        return [known for known, score, _ in scored if score >= scored[0][1] - MAX_SIMILARITY_SPREAD]


def _unquoted(word: str) -> str:
    """Remove the quotation marks around the name of a status, to search for the name as a word."""
    inner = word.strip('"')
    if inner in _TESTS:
        return inner
    return word


def _keep_matching(candidates: list[_Texts], fits: Callable[[str], bool]) -> list[_Texts]:
    kept: list[_Texts] = []
    for texts in candidates:
        kept.append([found for found in texts if fits(found[1])])
    return kept


def _with_tag(suites: Sequence[SuiteRows], candidates: list[_Texts], tag: str) -> list[_Texts]:
    kept: list[_Texts] = []
    for suite, texts in zip(suites, candidates, strict=True):
        kept.append([(at, text) for at, text in texts if _has_tag(suite, suite.cases[at], tag)])
    return kept


def with_status(
    suites: Sequence[SuiteRows], text: str, summary_of: Callable[[CaseKey], CaseSummary]
) -> frozenset[CaseKey] | None:
    """Return the cases that match the status words of a filter, `None` if the filter has no status words.

    After `status:` comes the beginning of a status or of `running`, `never` (never run), `unsaved`, `broken` or
    `disagree` (graders disagree). A case must match every status word."""
    asked = []
    for word in text.casefold().split():
        if word.startswith(STATUS) or word in _TESTS:
            asked.append(word.removeprefix(STATUS))
    if not asked:
        return None
    tests = [_test_of_status(word) for word in asked]
    found: set[CaseKey] = set()
    for rows in suites:
        for row in rows.cases:
            assert row.case is not None
            # A case with data rows matches if one of its rows does.
            summaries = [summary_of((rows.suite.path, key)) for key in rows.keys(row)]
            for summary in summaries:
                if all(test(rows.suite, row.case, summary) for test in tests):
                    found.add((rows.suite.path, row.case.key))
    return frozenset(found)


def _test_of_status(word: str) -> _Test:
    tests = [test for name, test in _TESTS.items() if name.startswith(word)]
    return lambda suite, case, summary: any(test(suite, case, summary) for test in tests)


def _named(suite: OpenSuite) -> str:
    read = suite.file.suite
    if read is not None:
        return f"{suite.path.stem} {read.name} {' '.join(read.tags)}".casefold()
    if not suite.cases:
        return f"{suite.path.stem}  ".casefold()
    # The suite has errors, so its settings are read unchecked and may have values of any type.
    header = suite.document.table(HEAD)
    tags = " ".join(map(str, _list_of(header, "tags")))
    return f"{suite.path.stem} {header.get('name', '')} {tags}".casefold()


def _text(row: Row, table: Table, named: str) -> str:
    case = row.case
    if case is None:
        return named
    messages: list[str] = []
    for part in (table, *_list_of(table, "steps")):
        if isinstance(part, dict) and "user" in part:
            messages.append(str(part["user"]))
    return f"{named} {case.name} {case.id} {' '.join(case.tags)} {' '.join(messages)}".casefold()


def _has_tag(suite: SuiteRows, row: Row, searched_tag: str) -> bool:
    tags = _list_of(suite.suite.document.table(HEAD), "tags")
    if row.case is not None:
        tags = [*row.case.tags, *tags]
    return any(str(tag).casefold().startswith(searched_tag) for tag in tags)


def _list_of(table: Table, key: str) -> list[object]:
    value = table.get(key)
    if isinstance(value, list):
        return value
    return []


def advice(text: str) -> str | None:
    """Return a hint on the first word of a filter that looks like a misspelt prefix or status.

    Return `None` if there is none."""
    for word in text.casefold().split():
        name, colon, value = word.partition(":")
        if word.startswith(STATUS) and not any(known.startswith(value) for known in _TESTS):
            return f"{word} is not known; a status is {', '.join(_TESTS)}."
        if colon and name.isalpha() and f"{name}:" not in (STATUS, TAG):
            return f"{name}: is not a filter; the filters are status: and tag:."
        if word in _TESTS:
            return f'{word} filters by status; "{word}", in quotation marks, searches the texts of cases.'
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
