"""Tests that try many rows in one test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def each_row(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Try a function with each row of a table, as `pytest.mark.parametrize` does, but in one test.

    A test costs several milliseconds, far more than a call of a pure function. All rows are tried, and a failure names
    its row."""
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(row, len(parameters)) for row in rows]
    assert table, "no row would be tried"

    def of(function: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            failures: list[BaseException] = []
            for place, values in enumerate(table):
                row = dict(zip(parameters, values, strict=True))
                try:
                    function(**row)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (raised below)
                    error.add_note(f"row {place}: {row!r}")
                    failures.append(error)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows", failures)

        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(test, name, getattr(function, name))
        return test

    return of


def _values(row: Any, count: int) -> tuple[Any, ...]:
    if isinstance(row, ParameterSet):
        assert not row.marks, "a row has no marks of its own"
        return tuple(row.values)
    return (row,) if count == 1 else tuple(row)
