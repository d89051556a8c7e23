"""Measures that make commands start fast. They apply before slow modules are imported.

The table has the share of a command's processor time that each measure saves. Figures are medians of interleaved runs.
Those for patterns and annotations are shares of the instructions that valgrind counts.

| measure | `run` | `validate` | `history` |
|---|---|---|---|
| data classes of `workbench.dataclasses` | 22 % | 18 % | 22 % |
| models that are built when they are first used (`defer_build`) | 4 % | 6 % | 20 % |
| plain schemas without jsonschema (`checks.schemas`) | 14 % | 22 % | 0 % |
| pydantic without plugins (`import_pydantic`, which also gives it quicker data classes) | 8 % | 8 % | 1 % |
| rare garbage collection (`collect_rarely`) | 7 % | 1 % | 4 % |
| `--help` without importing what only execution needs (`options_module`; saves 85 % of `--help`) | 0 % | 0 % | 0 % |
| patterns that are compiled when they are first used (`late_pattern`) | 5 % | 3 % | 4 % |
| models without annotations from `__future__`, which pydantic would have to compile | 2 % | 2 % | 2 % |

Ending the process without a last garbage collection (`workbench.__main__`) saves a further fifth of `validate`. Each
kind of check builds its validator when a suite first has such a check (`checks.check`), which saves 6 % of it.

The data classes have a separate file, because it imports `dataclasses` and `inspect`. These imports would take a tenth
of the time of `--version`."""

from __future__ import annotations

# The module `signal` imports other modules. Ctrl+C during these imports would print a traceback, so `_signal` is used.
import os
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]

# A substitute for `typing.TYPE_CHECKING`, because importing `typing` takes a tenth of the time of `--version`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from types import ModuleType
    from typing import AnyStr

_OBJECTS_BETWEEN_COLLECTIONS = 500_000


def end_at_interrupt() -> None:
    """Let Ctrl+C end this process at once without a traceback, unless the caller ignores the signal."""
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, _end)


class InterruptsRaised:
    """A context in which Ctrl+C raises KeyboardInterrupt instead of ending the process."""

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
    """Make Python collect garbage less often."""
    # Imports and events make many objects and hardly any cycles, so most collections find nothing.
    import gc

    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


class QuickDataclasses:
    """A context in which imported packages use `dataclass` in place of the standard library's slower decorator."""

    def __init__(self, dataclass: Callable[..., object]) -> None:
        self._dataclass = dataclass

    def __enter__(self) -> None:
        import dataclasses

        self._standard = vars(dataclasses)["dataclass"]
        # `vars` hides this assignment from type checkers, which would report it.
        vars(dataclasses)["dataclass"] = self._dataclass

    def __exit__(self, *error: object) -> None:
        import dataclasses

        vars(dataclasses)["dataclass"] = self._standard


def import_pydantic(dataclass: Callable[..., object]) -> None:
    """Import pydantic without its search for plugins, and with `dataclass` as a quicker decorator for data classes."""
    import sys
    import typing
    from types import ModuleType

    import typing_extensions

    # The search imports `email` and `zipfile`, and reads the metadata of every installed package. The variable
    # PYDANTIC_DISABLE_PLUGINS would prevent only the reading, so an empty module replaces the module that searches.
    loader = ModuleType("pydantic.plugin._loader")
    vars(loader)["get_plugins"] = tuple
    sys.modules.setdefault(loader.__name__, loader)
    before = typing.TypedDict, typing_extensions.TypedDict
    try:
        # The subclasses of `TypedDict` in pydantic_core serve only type checkers, so their annotations are not needed.
        vars(typing)["TypedDict"] = vars(typing_extensions)["TypedDict"] = _UncheckedDict
        import pydantic_core
    finally:
        vars(typing)["TypedDict"], vars(typing_extensions)["TypedDict"] = before
    with QuickDataclasses(dataclass):
        import pydantic.functional_validators
        import pydantic.types
    assert pydantic_core and pydantic


class _UncheckedDict(dict):  # type: ignore[type-arg]
    """A substitute for `TypedDict` that is faster, because it does not read the annotations of its subclasses."""

    def __init_subclass__(cls, **options: object) -> None: ...


_options_of = ""
"""The name of the module that is being loaded for its command's options, or "" if none is."""


def options_module(name: str) -> ModuleType:
    """Load the module of a command only to read its options, without the imports that `executes` guards."""
    # The omitted imports would take most of the time of `--help`. The module is removed from `sys.modules`, so that a
    # later import loads it with all imports.
    global _options_of
    import sys
    from importlib.util import find_spec, module_from_spec

    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    _options_of = name
    # Data classes look up their module in `sys.modules` while it is executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        _options_of = ""
        del sys.modules[name]
    return module


def executes(name: str) -> bool:
    """Return whether a command's module is being imported to execute the command, and not only to read its options."""
    return name != _options_of


if TYPE_CHECKING:

    def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return a pattern like `re.compile`, but compile it when one of its methods is first called.

        An invalid pattern raises its error at that call."""
        ...

else:

    class late_pattern:  # noqa: N801 (called like a function)
        def __init__(self, pattern, flags=0):
            self._written = (pattern, flags)

        def __getattr__(self, name):
            import re

            # The method is stored in the instance, so that later uses do not call `__getattr__`.
            found = getattr(re.compile(*self._written), name)
            setattr(self, name, found)
            return found
