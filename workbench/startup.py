"""What is done at a start because a command measurably needs it, before what takes long is imported.

Shares of the processor time of a command that each saves, medians of interleaved runs; of patterns, shares of the
instructions that valgrind counts:

| what | `run` | `validate` | `history` |
|---|---|---|---|
| data classes of `workbench.dataclasses` | 22 % | 18 % | 22 % |
| models that are built when they are first used (`defer_build`) | 4 % | 6 % | 20 % |
| plain schemas without jsonschema (`checks.schemas`) | 14 % | 22 % | 0 % |
| pydantic without plugins (`leave_out_pydantic_plugins`) | 8 % | 8 % | 1 % |
| few collections of garbage (`collect_rarely`) | 7 % | 1 % | 4 % |
| modules of commands without what they execute (`options_module`), of `--help` 85 % | 0 % | 0 % | 0 % |
| patterns that are compiled when they are first used (`late_pattern`) | 5 % | 3 % | 4 % |

The data classes have a file of their own, because they import `dataclasses` and `inspect`, which take a tenth of
`--version`. Nothing is imported here before Ctrl+C is taken care of, not even `signal`: while it is imported, nothing
could catch an interrupt yet.
"""

from __future__ import annotations

import os
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]

TYPE_CHECKING = False  # as in `typing`, which takes a tenth of `--version`
if TYPE_CHECKING:
    import re
    from types import ModuleType
    from typing import AnyStr

_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def end_at_interrupt() -> None:
    """Have Ctrl+C end this process at once, without a traceback, unless the caller ignores it."""
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, _end)


class InterruptsRaised:
    """Have Ctrl+C raise KeyboardInterrupt for a while, in a process that it would end."""

    def __enter__(self) -> None:
        self._ended = getsignal(SIGINT) is _end
        if self._ended:
            signal(SIGINT, default_int_handler)

    def __exit__(self, *error: object) -> None:
        if self._ended:
            end_at_interrupt()


def _end(number: int, frame: object) -> None:
    os._exit(128 + number)


def collect_rarely() -> None:
    """Have Python look for garbage less often: imports and events make many objects and hardly any cycles."""
    import gc

    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


def leave_out_pydantic_plugins() -> None:
    """Have pydantic look for no plugins, which this program does not use.

    It would read the metadata of every installed package, and import `email` and `zipfile` for that;
    PYDANTIC_DISABLE_PLUGINS would save only the reading."""
    import sys
    from types import ModuleType

    loader = ModuleType("pydantic.plugin._loader")
    vars(loader)["get_plugins"] = tuple
    sys.modules.setdefault(loader.__name__, loader)


_options_of = ""
"""The module that is loaded for the options of its command."""


def options_module(name: str) -> ModuleType:
    """Load the module of a command for its options, without its own imports unless `executes`.

    Those imports are most of the time of `--help` and of the answer to a mistake. Others import the whole module, so it
    does not stay in `sys.modules`."""
    global _options_of
    import sys
    from importlib.util import find_spec, module_from_spec

    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    _options_of = name
    sys.modules[name] = module  # data classes look for it there
    try:
        spec.loader.exec_module(module)
    finally:
        _options_of = ""
        del sys.modules[name]
    return module


def executes(name: str) -> bool:
    """Return whether a module of a command is imported to execute it, not for its options alone."""
    return name != _options_of


if TYPE_CHECKING:

    def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return what `re.compile` does, compiled when one of its methods is first used.

        A wrong pattern is an error only then."""
        ...

else:

    class late_pattern:  # noqa: N801 (called like a function)
        def __init__(self, pattern, flags=0):
            self._written = (pattern, flags)

        def __getattr__(self, name):
            import re

            found = getattr(re.compile(*self._written), name)
            setattr(self, name, found)
            return found
