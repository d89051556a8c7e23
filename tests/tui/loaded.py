"""Runs `workbench`, and writes the names of all loaded modules into a file at the end: `python -m tests.tui.loaded FILE
[PATH ...]`."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path

from workbench.cli.main import main

if __name__ == "__main__":
    file = Path(sys.argv[1])
    atexit.register(lambda: file.write_text("\n".join(sys.modules), encoding="utf-8"))
    sys.exit(main(sys.argv[2:]))
