"""Trust on the command line: what a suite would start is shown, and asked about where someone can answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from workbench.cli.suites import complain
from workbench.config.folders import Folders
from workbench.config.resources import MissingResourceError, bundled
from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.suite.trust import Needs, TrustError, TrustStore, needs_trust


def trusted_suites(files: Iterable[SuiteFile], folders: Folders, *, all_of_them: bool) -> frozenset[Path] | None:
    """The suites that may start what they name, after asking where that is possible.

    Returns `None` when a suite needs trust and did not get it; what it would have started has then been said.
    """
    store = TrustStore(folders.trust_file, bundled_folder=_bundled_samples())
    trusted: set[Path] = set()
    refused = False
    for file in files:
        if file.suite is None:
            continue
        needs = needs_trust(file.suite, file.path)
        if all_of_them or store.is_trusted(file.path, needs):
            trusted.add(file.path)
            continue
        complain(f"{file.path} would, on this machine:")
        for line in needs.lines:
            complain(f"  {line}")
        if _asked(file.path):
            _remember(store, file.path, needs)
            trusted.add(file.path)
        else:
            refused = True
    if store.notice is not None:
        complain(store.notice)
    if refused:
        complain("not trusted, nothing was started: answer 'yes' on a terminal, or give --trust for this one run")
    return None if refused else frozenset(trusted)


def _bundled_samples() -> Path | None:
    try:
        return bundled("sample_suites")
    except MissingResourceError:
        return None  # without samples there are none to trust; suites of one's own are asked about as ever


def _remember(store: TrustStore, path: Path, needs: Needs) -> None:
    try:
        store.trust(path, needs)
    except TrustError as error:
        complain(f"{error}; it holds for this run only")


def _asked(path: Path) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"Trust {one_line(path.name)} and remember it? [yes/no] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("yes", "y")
