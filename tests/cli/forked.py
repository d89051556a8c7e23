"""Forks a program on behalf of the process that started this one: `python -I -S forked.py ADDRESS FUNCTION WORD...`
(see `tests.cli.forking.forked_command`).

The program gets the standard streams, folder and environment of this process, which exits with the program's exit
code."""

import json
import os
import socket
import sys

NUMBER_BYTES = 12

address, run, *words = sys.argv[1:]
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(f"\0{address}")
    connection.recv(1)
    answers, its = socket.socketpair()
    request = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ), "first": "", "needs": []}  # noqa: PTH109
    request["run"] = run
    sent = json.dumps(request).encode() + b"\n"
    socket.send_fds(connection, [sent], [its.fileno(), 0, 1, 2])
    its.close()
    answers.recv(NUMBER_BYTES, socket.MSG_WAITALL)
    for stream in range(3):
        os.close(stream)
    sys.exit(int(answers.recv(NUMBER_BYTES, socket.MSG_WAITALL)))
