"""What answers the calls of returns_desk.toml: an order that can be looked up and cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ORDERS: dict[str, dict[str, str]] = {"A17": {"status": "open", "total": "47.50"}}


def find_order(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return an order."""
    return ORDERS[arguments["order"]]


def cancel_order(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Cancel an order and return it."""
    ORDERS[arguments["order"]]["status"] = "cancelled"
    return ORDERS[arguments["order"]]
