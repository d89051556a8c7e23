"""Finds out whether stored runs were made of the same, unchanged case."""

from __future__ import annotations

from contextlib import suppress

from workbench.history.history import History
from workbench.history.records import DamagedError, HistoryError, RunRow, SuiteRef


class CaseContents:
    """Returns a text for each stored run. Two runs with equal texts had the same, unchanged case.

    A text consists of the case and of its suite without the other cases. It also includes the instructions of servers
    and the hashes of images, which only the run itself has. Each suite is read once. If the suite has servers, one run
    of each batch is read too."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._of_suites: dict[SuiteRef, dict[str, str]] = {}
        self._sent: dict[tuple[int, str, str], str] = {}

    def of(self, run: RunRow) -> str:
        """Return the text that shows with which case a finished run was made.

        If the case cannot be read, the text is the hash of the suite."""
        suite = run.suite
        if suite not in self._of_suites:
            self._of_suites[suite] = {}
            with suppress(DamagedError):
                self._of_suites[suite] = self._read(suite)
        text = self._of_suites[suite].get(run.case_id, suite.hash)
        # Images and offered tools belong to a case. Instructions are the same for all cases of a suite.
        if "images" in text or "offer" in text:
            return text + self._sent_to(run, run.case_id)
        if "servers" in text:
            return text + self._sent_to(run, "")
        return text

    def _sent_to(self, run: RunRow, case_id: str) -> str:
        """Return the server instructions and the image hashes of a run, as text.

        The text is cached for all runs of a case in a batch."""
        key = (run.batch, run.suite.key, case_id)
        if key not in self._sent:
            try:
                start = self._history.recording(run).trajectory.start
            except HistoryError:
                # Damage is reported together with the batch.
                return ""
            # A run without tools may have ended before its servers started, so its instructions are unknown.
            if start is None or not start.tools:
                return ""
            media = [each.sha256 for message in start.messages for each in message.media]
            self._sent[key] = f"\0{start.instructions}\0{media}"
        return self._sent[key]

    def _read(self, suite: SuiteRef) -> dict[str, str]:
        cases, rest = self._history.case_texts(suite), self._history.suite_text(suite)
        # The suite's other keys count too: its defaults, tools and prompts apply to all of its cases.
        for text in cases.values():
            rest = rest.replace(text, "", 1)
        return {case: f"{rest}\0{text}" for case, text in cases.items()}
