from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.config.models import is_loopback


@each_row("host", ["localhost", "api.localhost", "127.0.0.1:80", "127.8.9.1", "[::1]:80", "0.0.0.0", "[::]"])
def test_this_machine_itself_is_loopback(host: str) -> None:
    assert is_loopback(f"http://{host}/v1")


@pytest.mark.parametrize("host", ["localhost.example", "192.168.0.1", "[fe80::1]", "127.example", ""])
def test_everything_else_is_not(host: str) -> None:
    assert not is_loopback(f"http://{host}/v1")
