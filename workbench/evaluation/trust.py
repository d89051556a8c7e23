"""Which suites the user trusts."""

from __future__ import annotations

from pathlib import Path

from workbench.config.folders import Folders, MissingResourceError, bundled
from workbench.suite.trust import TrustStore


def trust_store(folders: Folders) -> TrustStore:
    """What the user trusts, and which suites came with the program."""
    try:
        samples: Path | None = bundled("sample_suites")
    except MissingResourceError:
        samples = None  # without samples there are none to trust; suites of one's own are asked about as ever
    return TrustStore(folders.trust_file, bundled_folder=samples)
