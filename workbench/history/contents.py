"""What runs of a case depend on: tells whether two stored runs were asked, and expected, the same."""

from __future__ import annotations

from contextlib import suppress

from workbench.history.history import History
from workbench.history.records import DamagedError, SuiteRef


class Contents:
    """The contents of cases of a history, each suite read once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._of_suites: dict[SuiteRef, dict[str, str]] = {}

    def of(self, suite: SuiteRef, case_id: str) -> str:
        """Return the text of a case and that of its suite without cases; for a damaged suite, which file it was."""
        if suite not in self._of_suites:
            self._of_suites[suite] = {}
            with suppress(DamagedError):
                self._of_suites[suite] = self._read(suite)
        return self._of_suites[suite].get(case_id, suite.hash)

    def _read(self, suite: SuiteRef) -> dict[str, str]:
        cases, rest = self._history.case_texts(suite), self._history.suite_text(suite)
        for text in cases.values():
            rest = rest.replace(text, "", 1)
        return {case: f"{rest}\0{text}" for case, text in cases.items()}
