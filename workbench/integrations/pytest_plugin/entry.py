"""The options and fixtures of the plugin, which pytest loads in every session.

Other modules are imported when they are needed, so a session without suites starts as fast as without the plugin."""

from __future__ import annotations

import argparse
import math

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench import Report
    from workbench.integrations.pytest_plugin.fixtures import Workbench


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and project settings of the plugin."""
    group = parser.getgroup("workbench", "Workbench: suites of tool calls as tests")
    group.addoption("--workbench", action="store_true", help="collect suites (TOML files with `format = 1`)")
    group.addoption(
        "--workbench-model",
        action="append",
        default=[],
        metavar="MODEL",
        help="run on this model instead of those that the suites name; A,B for several",
    )
    group.addoption("--workbench-repeats", type=_from_1, metavar="N", help="how often each case is run")
    group.addoption(
        "--workbench-repeat-rule",
        choices=("every", "last", "mean", "majority"),
        help="rule that combines the runs of a case into one status; overrides the suites",
    )
    group.addoption(
        "--workbench-concurrency", type=_from_1, metavar="N", help="runs under way at a time on an endpoint"
    )
    group.addoption(
        "--workbench-max-cost",
        type=_dollars,
        metavar="USD",
        help="start no run that could raise the cost of the session, judges included, above this",
    )
    group.addoption(
        "--workbench-trust", action="store_true", help="approve the programs and code that suites start and import"
    )
    group.addoption("--workbench-execute", action="store_true", help="really execute tools that are marked read-only")
    group.addoption("--workbench-history", action="store_true", help="record the batch in the project's history")
    group.addoption(
        "--workbench-baseline",
        metavar="BATCH",
        help="compare with this batch of the project's history: a test fails only where its case surely broke since",
    )
    group.addoption(
        "--workbench-report",
        action="append",
        default=[],
        metavar="FILE",
        help="write a report of all runs; the form follows the ending (.html, .md, .json, …); repeatable",
    )
    group.addoption(
        "--workbench-errors",
        choices=("error", "fail", "skip"),
        default="error",
        help="result of a run that a model or a server failed: error (default), fail or skip",
    )
    parser.addini("workbench", "collect suites, as --workbench does", type="bool", default=False)
    parser.addini("workbench_models", "models to run on, as --workbench-model does", type="args", default=[])


def _dollars(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"write a number of US dollars above 0, not {text!r}")
    return number


def _from_1(text: str) -> int:
    # `int` alone would also accept "1_0" and " 1".
    if not (text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"write a number from 1, not {text!r}")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the collection of suites if an option or the project's settings request it."""
    if config.getoption("workbench") or config.getini("workbench"):
        from workbench.integrations.pytest_plugin.tests import Suites

        config.pluginmanager.register(Suites(config), "workbench-suites")


@pytest.fixture(scope="session", name="workbench")
def workbench_of_session(request: pytest.FixtureRequest) -> Workbench:
    """Provide `evaluate`, `grade`, `load` and `call` of Workbench with the options of pytest's command line."""
    from workbench.integrations.pytest_plugin.fixtures import Workbench

    return Workbench(request.config)


@pytest.fixture
def workbench_suite(request: pytest.FixtureRequest, workbench: Workbench) -> Callable[..., Report]:
    """Provide a function that evaluates a suite next to the test file.

    >>> workbench_suite("clock.toml", model=agent).assert_passed()
    """
    return workbench.beside(request.path.parent)
