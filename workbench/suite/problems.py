"""What is wrong with a suite file, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """One finding in a suite file: what, where (file, line from 1, path such as `cases[3].ordered[0].args.city`), and
    what to do about it. A suite with an error cannot run; a warning only informs."""

    file: Path
    line: int | None
    where: str
    message: str
    hint: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        subject = f" {self.where}:" if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {self.severity}:{subject} {self.message}{hint}"
