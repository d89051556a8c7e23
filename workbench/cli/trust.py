"""Trust on the command line: what a suite would start is shown, and asked about where someone can answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from workbench.batches.plan import PlannedRun
from workbench.batches.trusting import can_do_with_mocks, models_asked, must_ask, needs_of, with_asked
from workbench.cli.suites import complain
from workbench.config.folders import Folders
from workbench.config.program import Program
from workbench.config.resources import MissingResourceError, bundled
from workbench.config.secrets import Secrets
from workbench.reports.values import counted
from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.suite.trust import ModelNeed, Needs, TrustError, TrustStore
from workbench.tools.listings import Listings


def trusted_for(runs: Sequence[PlannedRun], program: Program, *, all_of_them: bool) -> frozenset[Path] | None:
    """The trusted suites among those of some runs; asked is only about those of which the runs would use something that
    needs it. Returns `None` as `trusted_suites` does."""
    by_suite: dict[Path, list[PlannedRun]] = {}
    listings = Listings(program.folders.listings)
    for run in runs:
        by_suite.setdefault(run.file.path, []).append(run)
    return trusted_suites(
        [group[0].file for group in by_suite.values()],
        program,
        all_of_them=all_of_them,
        asks=lambda file, needs: must_ask(needs, by_suite[file.path], program.models),
        mocks=lambda file: can_do_with_mocks(file, by_suite[file.path], program.models, listings),
        asked=lambda file: models_asked(by_suite[file.path], program.models),
    )


def trusted_suites(
    files: Iterable[SuiteFile],
    program: Program,
    *,
    all_of_them: bool,
    asks: Callable[[SuiteFile, Needs], bool] = lambda _file, _needs: True,
    mocks: Callable[[SuiteFile], bool] = lambda _file: False,
    asked: Callable[[SuiteFile], Collection[ModelNeed]] | None = None,
    used: Callable[[SuiteFile], Needs] | None = None,
) -> frozenset[Path] | None:
    """The suites that may start what they name, after asking where that is possible and `asks` says so: another one
    stays untrusted, and so does one of which `mocks` says that mocks will do, where that is the answer. `asked` are the
    models that would be asked now; without it none ever is, and neither the question nor the answer is about models.
    `used` is what would be used, where that is not all: then one question is about all suites with the same.

    Returns `None` when a suite needs trust and did not get it; what trusting it allows has then been said.
    """
    store = trust_store(program.folders)
    trusted: set[Path] = set()
    refused = False
    alike: dict[tuple[Needs, Path | None], list[SuiteFile]] = {}
    for file in files:
        if file.suite is None:
            continue
        of_suite = needs_of(file, program.models)
        whole = with_asked(of_suite, asked(file)) if asked is not None else of_suite
        needs = used(file) if used is not None else whole if asked is not None else replace(whole, models=())
        of_history = file.as_then or whole != of_suite
        if all_of_them or any(store.is_trusted(file.path, each, of_history=of_history) for each in (needs, whole)):
            trusted.add(file.path)
            continue
        if asks(file, needs):
            alike.setdefault((needs, file.path if used is None else None), []).append(file)
    for (needs, _), group in alike.items():
        file, others = group[0], len(group) - 1
        more = f" and {counted(others, 'other')} like it" if others else ""
        complain(f"trusting {file.path}{more} allows it, on this machine, to:", program.secrets)
        for line in needs.lines(asked(file) if asked is not None else ()):
            complain(f"  {line}", program.secrets)
        match _asked(f"{one_line(file.path.name)}{more}", mocks=mocks(file)):
            case "yes":
                for each in group:
                    _remember(store, each.path, needs, program.secrets)
                    trusted.add(each.path)
            case "no":
                refused = True
    if store.notice is not None:
        complain(store.notice)
    if refused:
        complain("not trusted, nothing was started: answer 'yes' on a terminal, or give --trust for this one run")
    return None if refused else frozenset(trusted)


def trust_store(folders: Folders) -> TrustStore:
    """What the user trusts, and which suites came with the program."""
    return TrustStore(folders.trust_file, bundled_folder=_bundled_samples())


def _bundled_samples() -> Path | None:
    try:
        return bundled("sample_suites")
    except MissingResourceError:
        return None  # without samples there are none to trust; suites of one's own are asked about as ever


def _remember(store: TrustStore, path: Path, needs: Needs, secrets: Secrets) -> None:
    try:
        store.trust(path, needs)
    except TrustError as error:
        complain(f"{error}; it holds for this run only", secrets)


def _asked(suite: str, *, mocks: bool) -> Literal["yes", "no", "mocks"]:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return "no"
    choices = "yes/no/mocks: run without its servers" if mocks else "yes/no"
    sys.stderr.write(f"Trust {suite} and remember it? [{choices}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip().lower()
    if mocks and answer in ("mocks", "m"):
        return "mocks"
    return "yes" if answer in ("yes", "y") else "no"
