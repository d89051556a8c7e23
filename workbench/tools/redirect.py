"""Receives the answer of an authorization server: from the browser at a local address, or from a pasted address."""

from __future__ import annotations

import asyncio
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

from workbench.dataclasses import dataclass

REDIRECT_PORT = 47323
"""The preferred port of the local address. It is fixed, so that users can register and forward it."""

_HOST = "127.0.0.1"
_PATH = "/callback"

_PAGE = """<!doctype html><meta charset="utf-8"><title>Workbench</title><p>{text}</p>
"""


class LoginError(Exception):
    """Raised if a login failed. The message says why, and the server's name is put before it."""


class PortTakenError(Exception):
    """Raised if another program listens on the port."""


@dataclass(frozen=True)
class RedirectAnswer:
    """The answer that an authorization server gives by a redirect: a code, and its issuer (RFC 9207)."""

    code: str
    state: str
    iss: str | None = None


class RedirectServer:
    """A context manager that waits at a local address for the answer to one login.

    Entering it raises PortTakenError if the port is in use. An answer with an unexpected `state` belongs to another
    login. It is refused, and the wait continues."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._state: str | None = None
        self._answer: asyncio.Future[RedirectAnswer] | None = None
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """The address to which the authorization server sends the browser."""
        return f"http://{_HOST}:{self.port}{_PATH}"

    async def __aenter__(self) -> RedirectServer:
        try:
            self._server = await asyncio.start_server(self._serve, _HOST, self.port)
        except OSError as error:
            raise PortTakenError(f"cannot listen on port {self.port}: {error.strerror}") from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.close()

    async def answer_to(self, address: str) -> RedirectAnswer:
        """Wait for the answer to a login. `address` is where the login begins, at the authorization server.

        Raises LoginError if the answer is an error."""
        self._state = _values_of(address).get("state")
        self._answer = asyncio.get_running_loop().create_future()
        return await self._answer

    def accept_address(self, address: str) -> str | None:
        """Take the answer to the login from an address that the user pasted.

        Returns why the address is not an answer, `None` if it is an answer."""
        values = _values_of(address.strip())
        if "code" not in values and "error" not in values:
            return "this is not the address to which the browser was sent: it has neither code= nor error="
        answer = self._answer
        if answer is None or not self._state or values.get("state") != self._state:
            return "this address belongs to another login: open the address above, and log in there"
        if answer.done():
            return None
        if "error" in values:
            why = values.get("error_description") or values["error"]
            answer.set_exception(LoginError(f"refused the login ({why}): log in again, and allow it"))
        else:
            answer.set_result(RedirectAnswer(values["code"], values["state"], values.get("iss")))
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            words = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ")
            status, text = "404 Not Found", "There is nothing here."
            if len(words) == 3 and words[0] == "GET" and urlsplit(words[1]).path == _PATH:
                problem = self.accept_address(words[1])
                status, text = "200 OK", "Workbench has the answer. Close this page, and go back to the terminal."
                if problem is not None:
                    status, text = "400 Bad Request", f"Workbench did not take the answer: {problem}."
            body = _PAGE.format(text=text).encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
            await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the browser opened a connection in advance, or has gone away
        finally:
            self._open.discard(writer)
            writer.close()


def _values_of(address: str) -> dict[str, str]:
    try:
        return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    except ValueError:
        return {}
