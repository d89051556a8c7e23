"""Makes commands start fast, by measures that apply before slow modules are imported.

The table has the share of a command's processor time that each measure saves, medians of interleaved runs; for
patterns, the share of the instructions that valgrind counts:

| measure | `run` | `validate` | `history` |
|---|---|---|---|
| data classes of `workbench.dataclasses` | 22 % | 18 % | 22 % |
| models that are built when they are first used (`defer_build`) | 4 % | 6 % | 20 % |
| plain schemas without jsonschema (`checks.schemas`) | 14 % | 22 % | 0 % |
| pydantic without plugins (`import_pydantic`, which also gives it quicker data classes) | 8 % | 8 % | 1 % |
| rare garbage collection (`collect_rarely`) | 7 % | 1 % | 4 % |
| modules of commands without the imports of their execution (`options_module`; 85 % of `--help`) | 0 % | 0 % | 0 % |
| patterns that are compiled when they are first used (`late_pattern`) | 5 % | 3 % | 4 % |

Ending without a last collection of garbage (`workbench.__main__`) saves a further fifth of `validate`, and the one
schema of all checks (`checks.check`) a tenth.

The data classes have a file of their own, because they import `dataclasses` and `inspect`, which take a tenth of
`--version`."""

from __future__ import annotations

# Not `signal`, which imports other modules: until Ctrl+C is handled, it prints the traceback of an import.
import os
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]

# Stands for `typing.TYPE_CHECKING`: importing `typing` takes a tenth of `--version`.
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
    """A context in which imported packages get quicker data classes by the decorator `dataclass`."""

    def __init__(self, dataclass: Callable[..., object]) -> None:
        self._dataclass = dataclass

    def __enter__(self) -> None:
        import dataclasses

        self._standard = vars(dataclasses)["dataclass"]
        # The type checkers know `dataclass` as the standard library's.
        vars(dataclasses)["dataclass"] = self._dataclass

    def __exit__(self, *error: object) -> None:
        import dataclasses

        vars(dataclasses)["dataclass"] = self._standard


def import_pydantic(dataclass: Callable[..., object]) -> None:
    """Import pydantic without its search for plugins, and with quicker data classes.

    `dataclass` is the decorator for its data classes."""
    import sys
    import typing
    from types import ModuleType

    import typing_extensions

    # The search reads the metadata of every installed package, and imports `email` and `zipfile` for that. The variable
    # PYDANTIC_DISABLE_PLUGINS would save only the reading. So an empty module replaces the module of the search.
    loader = ModuleType("pydantic.plugin._loader")
    vars(loader)["get_plugins"] = tuple
    sys.modules.setdefault(loader.__name__, loader)
    before = typing.TypedDict, typing_extensions.TypedDict
    try:
        # These classes only describe core schemas to type checkers.
        vars(typing)["TypedDict"] = vars(typing_extensions)["TypedDict"] = _UncheckedDict
        import pydantic_core
    finally:
        vars(typing)["TypedDict"], vars(typing_extensions)["TypedDict"] = before
    with QuickDataclasses(dataclass):
        import pydantic.functional_validators
        import pydantic.types
    assert pydantic_core and pydantic


class _UncheckedDict(dict):  # type: ignore[type-arg]
    """A stand-in for `TypedDict` that does not read the annotations of its subclasses."""

    def __init_subclass__(cls, **options: object) -> None: ...


_options_of = ""
"""The module that is being loaded for its command's options; "" without one."""


def options_module(name: str) -> ModuleType:
    """Load the module of a command for its options alone, without the imports guarded by `executes`."""
    # These imports take most of the time of `--help`. The module does not stay in `sys.modules`: a later import must
    # load all of it.
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
    """Return whether a command's module is imported for execution, and not only for its options."""
    return name != _options_of


if TYPE_CHECKING:

    def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return a pattern like `re.compile`, but compile it on the first use of a method.

        An invalid pattern raises its error only then."""
        ...

else:

    class late_pattern:  # noqa: N801 (called like a function)
        def __init__(self, pattern, flags=0):
            self._written = (pattern, flags)

        def __getattr__(self, name):
            import re

            # The method is stored in the instance: later uses bypass `__getattr__`.
            found = getattr(re.compile(*self._written), name)
            setattr(self, name, found)
            return found
