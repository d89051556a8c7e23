"""The store of suites that the user trusts."""

from __future__ import annotations

from pathlib import Path

from workbench.config.folders import Folders, MissingResourceError, bundled
from workbench.suite.trust import TrustStore


def trust_store(folders: Folders) -> TrustStore:
    """Return the store of suites that the user trusts. The store always trusts suites that came with the program."""
    try:
        samples: Path | None = bundled("sample_suites")
    except MissingResourceError:
        # Without the sample suites, no suite is trusted from the start.
        samples = None
    return TrustStore(folders.trust_file, bundled_folder=samples)
