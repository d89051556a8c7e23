"""The headers of a request decide whether it is admitted."""

from __future__ import annotations

from urllib.parse import urlsplit

from tests.tables import each_row
from workbench.remote.gate import Gate, is_loopback

HERE = Gate()
FOR_OTHERS = Gate(frozenset({"build-box"}), by_address=True)
BEHIND_PROXY = Gate(public=urlsplit("https://workbench.example.org"))
OWN = {"Host": "127.0.0.1:8765", "Origin": "http://127.0.0.1:8765"}


@each_row(
    ("gate", "headers"),
    [
        (HERE, OWN),
        (HERE, {"Host": "localhost:9000", "Origin": "http://localhost:9000"}),  # the end of a tunnel
        (HERE, {"Host": "[::1]:8765", "Origin": "http://[::1]:8765", "Sec-Fetch-Site": "same-origin"}),
        (FOR_OTHERS, {"Host": "192.168.1.7:8765", "Origin": "http://192.168.1.7:8765"}),
        (FOR_OTHERS, {"Host": "Build-Box:8765", "Origin": "http://Build-Box:8765"}),
        (BEHIND_PROXY, {"Host": "workbench.example.org", "Origin": "https://workbench.example.org"}),
        (BEHIND_PROXY, OWN),
    ],
)
def test_own_pages_are_let_in(gate: Gate, headers: dict[str, str]) -> None:
    assert gate.refusal(headers, is_socket=True) is None


@each_row(
    ("gate", "headers"),
    [
        (HERE, {}),
        (HERE, {"Host": "evil.example:8765", "Origin": "http://evil.example:8765"}),  # DNS rebinding
        (HERE, {"Host": "127.0.0.1.evil.example", "Origin": "http://127.0.0.1.evil.example"}),
        (HERE, {"Host": "192.168.1.7:8765", "Origin": "http://192.168.1.7:8765"}),
        (HERE, {"Host": "evil.example@127.0.0.1", "Origin": "http://evil.example@127.0.0.1"}),
        (HERE, {"Host": "127.0.0.1:x", "Origin": "http://127.0.0.1:x"}),
        (HERE, {"Host": "127.0.0.1:8765"}),  # every browser says where it opens a socket from
        (HERE, {"Host": "127.0.0.1:8765", "Origin": "null"}),
        (HERE, {"Host": "127.0.0.1:8765", "Origin": "http://127.0.0.1:3000"}),
        (HERE, {"Host": "127.0.0.1:8765", "Origin": "https://127.0.0.1:8765"}),
        (HERE, {"Host": "127.0.0.1:8765", "Origin": "http://evil.example"}),
        (HERE, {**OWN, "Sec-Fetch-Site": "same-site"}),
        (FOR_OTHERS, {"Host": "evil.example:8765", "Origin": "http://evil.example:8765"}),
        (BEHIND_PROXY, {"Host": "workbench.example.org", "Origin": "http://workbench.example.org"}),
    ],
)
def test_all_others_are_refused(gate: Gate, headers: dict[str, str]) -> None:
    assert gate.refusal(headers, is_socket=True) is not None


def test_any_page_may_link_to_the_address_with_the_token() -> None:
    assert HERE.refusal({"Host": "127.0.0.1:8765", "Sec-Fetch-Site": "cross-site"}, is_entry=True) is None


def test_each_server_has_secrets_of_its_own() -> None:
    other = Gate()
    assert HERE.knows_token(HERE.token) and HERE.knows_key(HERE.key)
    assert not any(HERE.knows_token(said) for said in (other.token, HERE.key, "", "ü", HERE.token[:-1]))
    assert not any(HERE.knows_key(said) for said in (other.key, HERE.token, ""))
    assert len({HERE.token, HERE.key, other.token, other.key, HERE.path, other.path}) == 6
    assert HERE.token not in repr(HERE) and HERE.key not in repr(HERE)


@each_row(
    ("host", "only_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_what_only_this_machine_reaches(host: str, only_here: bool) -> None:
    assert is_loopback(host) is only_here
