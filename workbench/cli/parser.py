"""The parser of every command: no option is abbreviated, and no message repeats a key."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from workbench.cli.typed_keys import KEY_OPTION, NO_KEYS_HERE, without_keys

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Options = TypeVar("_Options", bound="DataclassInstance")


def options_as(kind: type[_Options], arguments: argparse.Namespace) -> _Options:
    """The options of a command, a dataclass whose fields are named like the arguments."""
    return kind(**{field.name: getattr(arguments, field.name) for field in fields(kind)})


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
