"""The program's log, in a file, because a log line on the terminal would overwrite the app's screen."""

from __future__ import annotations

import logging
from pathlib import Path

from workbench.config.secrets import NO_SECRETS, Secrets

LOG_NAME = "workbench.log"


def log_to(folder: Path, secrets: Secrets = NO_SECRETS, *, only_workbench: bool = False) -> Path:
    """Send the process's redacted warnings and errors to a file in `folder`, and return the file's path.

    With `only_workbench`, for programs that use Workbench as a library, the file receives only Workbench's own log. The
    first line creates the file. A line that cannot be written is dropped silently."""
    path = folder / LOG_NAME
    logger = logging.getLogger()
    if only_workbench:
        logger = logging.getLogger("workbench")
    # If this function is called again for another folder, only the new file must get the lines.
    for handler in tuple(logger.handlers):
        if isinstance(handler, _LogFile):
            logger.removeHandler(handler)
    logger.addHandler(_LogFile(path, secrets))
    logger.propagate = not only_workbench
    logging.raiseExceptions = False
    if not only_workbench:
        logging.captureWarnings(True)
    return path


class _LogFile(logging.FileHandler):
    def __init__(self, path: Path, secrets: Secrets) -> None:
        super().__init__(path, encoding="utf-8", delay=True, errors="backslashreplace")
        self.setLevel(logging.WARNING)
        self._secrets = secrets
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets.redact(super().format(record))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
            super().emit(record)
        # The base class does not catch errors of opening its file.
        except (OSError, ValueError):
            self.handleError(record)
