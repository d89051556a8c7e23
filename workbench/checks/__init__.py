"""The kinds of checks.

`from workbench.checks import contains, near` gives a function for each kind (`checks.functions`). Importing any module
of this package registers all kinds, in the order in which the documentation lists them."""

from typing import TYPE_CHECKING

# isort: off
from workbench.checks import value_kinds, text_kinds, combined_kinds, structure_kinds, element_kinds  # noqa: F401
from workbench.checks.check import CHECK_CLASSES
# isort: on

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def __getattr__(name: str) -> "Callable[..., dict[str, Any]]":
    if name in CHECK_CLASSES:
        from workbench.checks.functions import check_function

        return check_function(name)
    raise AttributeError(f"module {__name__!r} has no check {name!r}; the checks are {', '.join(CHECK_CLASSES)}")


def __dir__() -> list[str]:
    return [*CHECK_CLASSES]
