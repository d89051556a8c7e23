"""The program's log: one file, so that nothing ever prints over a screen."""

from __future__ import annotations

import logging
from pathlib import Path

from workbench.config.secrets import NO_SECRETS, Secrets

LOG_NAME = "workbench.log"


def log_to(folder: Path, secrets: Secrets = NO_SECRETS, *, own_alone: bool = False) -> Path:
    """Send warnings and errors of the process to a file in `folder`, without the secrets known now; return its path.

    With `own_alone`, only Workbench's own are sent there, and nowhere else, because the process is somebody else's.

    The file is made when the first line is written. Where it cannot be opened or written, the line is dropped silently,
    without an effect on the code that logs."""
    path = folder / LOG_NAME
    logger = logging.getLogger("workbench" if own_alone else None)
    for handler in tuple(logger.handlers):
        if isinstance(handler, _LogFile):
            logger.removeHandler(handler)
    logger.addHandler(_LogFile(path, secrets))
    logger.propagate = not own_alone
    logging.raiseExceptions = False
    if not own_alone:
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
        except (OSError, ValueError):  # of `open`, for which logging's own handler has no guard
            self.handleError(record)
