"""Who may talk to the server of `workbench serve`: a request's own headers are checked before anything is done.

Any page that is open in the same browser can send requests to this machine. It cannot choose the browser's words in
`Host`, `Origin` and `Sec-Fetch-Site`, and knows neither the token of the address nor the cookie that it becomes."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import field
from hmac import compare_digest
from urllib.parse import SplitResult, urlsplit

from workbench.dataclasses import dataclass

COOKIE = "workbench"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def _random() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Gate:
    """The conditions of a request.

    `names` are the names of this server beside those of the loopback device; with `by_address`, any address is one,
    which no foreign page can make its own name. `public` is the address under which a proxy offers it."""

    names: frozenset[str] = frozenset()
    by_address: bool = False
    public: SplitResult | None = None
    token: str = field(default_factory=_random, repr=False)
    """Stands in the address that is opened first."""
    key: str = field(default_factory=_random, repr=False)
    """The cookie that a browser gets for the token."""
    path: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}/")
    """All pages are below it. The cookie is sent nowhere else: browsers do not tell ports apart, and would show it to
    any other server of this machine."""

    def knows_token(self, said: str) -> bool:
        """Return whether this is the token."""
        return compare_digest(said.encode("utf-8", "replace"), self.token.encode())

    def knows_key(self, said: str) -> bool:
        """Return whether this is the cookie."""
        return compare_digest(said.encode("utf-8", "replace"), self.key.encode())

    def refusal(self, headers: Mapping[str, str], *, entering: bool = False, socket: bool = False) -> str | None:
        """Return why a request is refused whatever it knows, `None` if it is not.

        Any page may link to the address that is opened first, hence `entering`. Browsers always say where a `socket` is
        opened from."""
        host = headers.get("Host", "")
        if not self._is_own(host):
            return "this server has another name: open the address that it printed, or name yours with --public-url"
        origin = headers.get("Origin")
        if origin != self.origin(host) and (origin is not None or socket):
            return "another page asks, and only the app's own page may"
        if not entering and headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "another page asks, and only the app's own page may"
        return None

    def origin(self, host: str) -> str:
        """Return the origin of pages of this server, for the `Host` of a request."""
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
    """Return the name or address of a `Host`, without its port; `None` if it has none.

    Ports say nothing: a tunnel has another one at its end."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return None
    is_plain = parts.netloc == host and "@" not in host and not parts.path
    return name.removesuffix(".") if is_plain and name else None


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach a server at this address."""
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
