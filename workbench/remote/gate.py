"""Decides which requests the server of `workbench serve` answers."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import field
from hmac import compare_digest
from urllib.parse import SplitResult, urlsplit

from workbench.dataclasses import dataclass

# Any page in the user's browser can send requests to this machine. But it cannot change the headers `Host`, `Origin`
# and `Sec-Fetch-Site`, which the browser writes. It knows neither the token in the printed address nor the cookie that
# a browser gets for the token. So headers, token and cookie are checked before anything else.

COOKIE = "workbench"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_FROM_ANOTHER_PAGE = (
    "the request comes from another page, and only the app's own page may send it: open the printed address"
)


def _random() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Gate:
    """The conditions that a request to the server must meet.

    `names` are the server's host names, in addition to those of the loopback interface. With `by_address`, every IP
    address counts as a name of the server. `public` is the server's URL at a reverse proxy."""

    names: frozenset[str] = frozenset()
    by_address: bool = False
    public: SplitResult | None = None
    token: str = field(default_factory=_random, repr=False)
    """The secret in the printed address, which opens the app the first time."""
    key: str = field(default_factory=_random, repr=False)
    """The value of the cookie that a browser gets for the token."""
    # Browsers send a cookie to every port of a host. A random path keeps it from other servers on this machine.
    path: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}/")
    """The path with which the addresses of all pages begin."""

    def knows_token(self, text: str) -> bool:
        """Return whether a text is the token.

        The comparison takes constant time, so it reveals nothing about the token."""
        return compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def knows_key(self, text: str) -> bool:
        """Return whether a text is the value of the cookie. The comparison takes constant time."""
        return compare_digest(text.encode("utf-8", "replace"), self.key.encode())

    def refusal(self, headers: Mapping[str, str], *, is_entry: bool = False, is_socket: bool = False) -> str | None:
        """Return why a request is refused because of its headers; `None` if it is accepted.

        `is_entry` means that the request is for the address that the server printed. `is_socket` means that it opens a
        WebSocket."""
        # An attacker can let a host name point to this machine (DNS rebinding), so that a foreign page has the same
        # origin as this server. Therefore, only known names are accepted. Browsers always send `Origin` when they open
        # a WebSocket. `Sec-Fetch-Site` is not checked for the printed address, because any page may link to it.
        host = headers.get("Host", "")
        if not self._is_own(host):
            return "this server has another name: open the address that it printed, or name yours with --public-url"
        origin = headers.get("Origin")
        if origin != self.origin(host) and (origin is not None or is_socket):
            return _FROM_ANOTHER_PAGE
        if not is_entry and headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return _FROM_ANOTHER_PAGE
        return None

    def origin(self, host: str) -> str:
        """Return the origin (scheme, host and port) of this server's pages, for requests with this `Host` header."""
        if self.public is not None and host.lower() == self.public.netloc.lower():
            return f"{self.public.scheme}://{host}"
        return f"http://{host}"

    def _is_own(self, host: str) -> bool:
        if self.public is not None and host.lower() == self.public.netloc.lower():
            return True
        name = name_of(host)
        if name is None:
            return False
        return name in _LOOPBACK_NAMES or name in self.names or (self.by_address and _is_address(name))


def name_of(host: str) -> str | None:
    """Return the host name or address in a `Host` header, without the port; `None` for an invalid header."""
    # Behind a tunnel, the browser's address has a different port than this server, so the port is ignored.
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return None
    is_plain = parts.netloc == host and "@" not in host and not parts.path
    if is_plain and name:
        return name.removesuffix(".")
    return None


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server at this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
