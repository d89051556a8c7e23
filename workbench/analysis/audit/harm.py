"""Orders tools and arguments by the harm that a wrong call of them does, for the examples of an audit."""

from __future__ import annotations

import re

from workbench.trajectory.messages import ToolDefinition

_HARMFUL_WORDS = frozenset(
    {
        *(
            "approve",
            "ban",
            "block",
            "book",
            "buy",
            "cancel",
            "charge",
            "close",
            "delete",
        ),
        *(
            "deploy",
            "destroy",
            "disable",
            "drop",
            "email",
            "erase",
            "execute",
            "grant",
            "invite",
        ),
        *(
            "kill",
            "merge",
            "order",
            "pay",
            "payment",
            "post",
            "publish",
            "purchase",
            "purge",
        ),
        *(
            "reboot",
            "refund",
            "remove",
            "reset",
            "revoke",
            "run",
            "sell",
            "send",
            "shutdown",
        ),
        *(
            "submit",
            "terminate",
            "trade",
            "transfer",
            "unlock",
            "wipe",
            "withdraw",
        ),
    }
)
_READING_WORDS = frozenset(
    {
        *(
            "check",
            "count",
            "describe",
            "fetch",
            "find",
            "get",
            "list",
            "look",
            "lookup",
        ),
        *(
            "query",
            "read",
            "search",
            "show",
            "view",
        ),
    }
)
_HARMFUL_ARGUMENTS = frozenset(
    {
        *(
            "account",
            "all",
            "amount",
            "bcc",
            "cc",
            "confirm",
            "confirmed",
            "delete",
            "dry_run",
        ),
        *(
            "dryrun",
            "force",
            "notify",
            "overwrite",
            "permanent",
            "preview",
            "price",
            "quantity",
            "recipient",
        ),
        *(
            "recipients",
            "recursive",
            "simulate",
            "skip_checks",
            "target",
            "test_mode",
            "to",
            "total",
        ),
    }
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def harm_of(tool: ToolDefinition) -> int:
    """Return 2 for a tool whose call cannot be taken back, 0 for one that only reads, else 1: by its annotations, else
    by the words of its name."""
    if tool.annotations.get("readOnlyHint") is True:
        return 0
    if tool.annotations.get("destructiveHint") is True:
        return 2
    words = [word.lower() for word in _WORD.findall(tool.name)]
    if words and words[0] in _READING_WORDS:
        return 0
    return 2 if _HARMFUL_WORDS.intersection(words) else 1


def is_harmful_argument(name: str) -> bool:
    """Return whether a wrong value of an argument of this name usually does harm: `dry_run`, `amount`, `to`."""
    return name.lower().replace("-", "_") in _HARMFUL_ARGUMENTS
