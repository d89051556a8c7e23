"""A suite of one case, edited as the app edits it: its text, its case as a table and the parsed case."""

from __future__ import annotations

from pathlib import Path

from workbench.suite.model import Case, Suite
from workbench.suite.render import Table
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SuiteText


class EditedCase:
    """The only case of a suite."""

    def __init__(self, text: str) -> None:
        self.text = SuiteText.of(text)

    @property
    def suite(self) -> Suite:
        file = parse_suite(self.text.checked().text, Path("s.toml"))
        assert file.suite is not None, file.problems
        return file.suite

    @property
    def case(self) -> Case:
        return self.suite.cases[0]

    @property
    def table(self) -> Table:
        return self.text.cases[0]
