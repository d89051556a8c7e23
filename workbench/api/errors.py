"""What can go wrong for a Python caller before any run is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.suite.trust import SuiteNeeds


class WorkbenchError(Exception):
    """Something is wrong that the caller can mend; the message says what to do."""


class UsageError(WorkbenchError, ValueError):
    """Arguments that cannot be meant, such as an unknown case or a model that cannot be reached."""


class ApprovalError(WorkbenchError):
    """Suites need what was not approved, so nothing was started. `needs` holds it, one entry for each of `suites`,
    which are the paths of their files. `refused` is the message without its advice."""

    def __init__(self, refused: Iterable[tuple[str, SuiteNeeds, Sequence[str]]]) -> None:
        refused = tuple(refused)
        self.suites = tuple(suite for suite, _, _ in refused)
        self.needs = tuple(needs for _, needs, _ in refused)
        lines = [
            line for suite, _, allowed in refused for line in (f"{suite} would, on this machine:", *_indented(allowed))
        ]
        self.refused = "not approved, so nothing was started:\n" + "\n".join(lines)
        super().__init__(
            f"{self.refused}\n"
            "Allow all of it with approve=workbench.ALL, or decide in a function: approve=lambda needs: …"
        )


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
