"""The parser of every command: no option is abbreviated, and no message repeats a key."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from workbench.cli.typed_keys import KEY_OPTION, NO_KEYS_HERE, without_keys


class Parser(argparse.ArgumentParser):
    """Its subparsers are of this kind too."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self._words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = sys.argv[1:] if args is None else args
        options = self._words[: self._words.index("--")] if "--" in self._words else self._words
        if any(KEY_OPTION.fullmatch(word) for word in options):
            self.error(NO_KEYS_HERE)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        super().error(without_keys(message, self._words))
