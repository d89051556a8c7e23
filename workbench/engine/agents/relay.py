"""Relays messages between an MCP client and Workbench. An agent starts this file as an MCP server."""

from __future__ import annotations

# Agents start this file for each run and server. It imports only the standard library, so that it starts within about
# 0.04 s of CPU.
import os
import socket
import sys
import threading

TOKEN = "WORKBENCH_RELAY_TOKEN"
"""The environment variable with the token of the run."""

_CHUNK_BYTES = 1 << 16


def main() -> None:
    """Relay all messages between standard input and output and a socket.

    The first argument is the socket, the second the name of the server."""
    path, server = sys.argv[1:3]
    workbench = socket.socket(socket.AF_UNIX)
    try:
        workbench.connect(path)
    except OSError as error:
        sys.exit(f"the run of Workbench that offers the tools of {server} has ended: {error.strerror}")
    workbench.sendall(f"{os.environ.get(TOKEN, '')} {server}\n".encode())
    threading.Thread(target=_send, args=(workbench,), daemon=True).start()
    try:
        while data := workbench.recv(_CHUNK_BYTES):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass  # the agent or Workbench has ended
    os._exit(0)


def _send(workbench: socket.socket) -> None:
    try:
        while data := os.read(0, _CHUNK_BYTES):
            workbench.sendall(data)
        workbench.shutdown(socket.SHUT_WR)
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    main()
