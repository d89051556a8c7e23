"""`workbench serve` as a process, and visitors that speak to it as a browser does."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pyte

from tests.cli.program import COMMAND, Program

LONGEST_WAIT_S = 20.0


@dataclass(frozen=True)
class Served:
    """A running server: its address, token and process."""

    address: str
    token: str
    process: subprocess.Popen[str]

    @property
    def entry(self) -> str:
        return f"{self.address}/?token={self.token}"

    def apps(self) -> list[int]:
        """The process ids of the visitors' apps."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(child) for child in children]


@contextmanager
def served(program: Program, *words: str) -> Iterator[Served]:
    """Serve on a free port until the context is left."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *words],
        cwd=program.folder,
        env=program.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = ""
        while (found := re.search(r"(http\S+?)/\?token=(\S+)", said)) is None:
            line = process.stdout.readline()
            assert line, f"it ended: {said}"
            said += line
        yield Served(found[1], found[2], process)
    finally:
        process.terminate()
        process.stdout.close()
        assert process.wait(LONGEST_WAIT_S) == 0


class Visit:
    """A visitor with the app on a screen."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, columns: int, rows: int) -> None:
        self.socket = socket
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.sizes: list[int] = []
        """The number of bytes in each received frame."""

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    async def type(self, text: str) -> None:
        await self.socket.send_json(["stdin", text])

    async def until(self, *texts: str) -> str:
        """Read until the screen shows all of these texts."""
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                while not all(text in self.text for text in texts):
                    message = await self.socket.receive()
                    assert message.type is aiohttp.WSMsgType.BINARY, f"{message} on the screen\n{self.text}"
                    self.sizes.append(len(message.data))
                    self._stream.feed(message.data)
        except TimeoutError:
            raise AssertionError(f"never showed {texts}:\n{self.text}") from None
        return self.text

    async def until_closed(self) -> str | None:
        """Read until the connection closes, and return the reason."""
        async with asyncio.timeout(LONGEST_WAIT_S):
            while (message := await self.socket.receive()).type is aiohttp.WSMsgType.BINARY:
                pass
        return message.extra


async def enter(session: aiohttp.ClientSession, server: Served) -> str:
    """Get the cookie. Return the address of the app's page."""
    async with session.get(server.entry) as response:
        found = re.search(r"url=([^\"]+)", await response.text())
    assert found is not None
    return f"{server.address}{found[1]}"


@asynccontextmanager
async def visit(
    session: aiohttp.ClientSession, server: Served, page: str, size: Sequence[int] = (100, 30)
) -> AsyncIterator[Visit]:
    """Connect as the page does."""
    columns, rows = size
    address = f"{page}ws?width={columns}&height={rows}".replace("http", "ws", 1)
    async with session.ws_connect(address, headers={"Origin": server.address}, max_msg_size=0) as socket:
        yield Visit(socket, columns, rows)


def browser() -> aiohttp.ClientSession:
    """Return a session that keeps cookies as a browser does, including those of IP addresses."""
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
