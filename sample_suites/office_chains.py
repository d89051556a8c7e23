"""What answers the calls of office_chains.toml: mocks that compute their answers from the arguments."""

from __future__ import annotations

from typing import Any


def product(arguments: dict[str, Any]) -> float:
    """The two numbers multiplied."""
    result: float = arguments["a"] * arguments["b"]
    return result


def total(arguments: dict[str, Any]) -> float:
    """The two numbers added."""
    result: float = arguments["a"] + arguments["b"]
    return result
