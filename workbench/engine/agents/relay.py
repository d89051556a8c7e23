"""Passes the messages of an MCP client on to Workbench; an agent starts this file as if it were an MCP server."""

from __future__ import annotations

# Agents start it for each run and each server, so it imports only what the standard library has and starts in about
# 0.04 s of CPU.
import os
import socket
import sys
import threading

TOKEN = "WORKBENCH_RELAY_TOKEN"
"""The environment variable with the token of the run."""

_CHUNK_BYTES = 1 << 16


def main() -> None:
    """Connect to the socket of the first argument as the server of the second one, and pass on everything."""
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
