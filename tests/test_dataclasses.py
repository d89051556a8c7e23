"""The project's data classes behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import partial
from typing import Any, ClassVar
from weakref import ref

import pytest

from workbench.dataclasses import dataclass

Make = Callable[..., Any]
"""A decorator: the standard library's, or ours."""


def classes_by(make: Make) -> dict[str, type]:
    @make(frozen=True)
    class Point:
        x: float
        y: float = 0.0
        tags: list[str] = field(default_factory=list)
        secret: str = field(default="", repr=False)
        seen: int = field(default=0, compare=False)
        number: ClassVar[int] = 3

        def __post_init__(self) -> None:
            object.__setattr__(self, "y", self.y * 2)

    @make(frozen=True)
    class Named(Point):
        name: str = "?"

    @make(frozen=True, slots=True)
    class Slotted:
        a: tuple[int, ...]
        b: str | None = None

    @make(frozen=True, kw_only=True)
    class Keywords:
        a: int
        b: int = 1

    @make(frozen=True, slots=True, weakref_slot=True)
    class One:
        value: float

    @make(frozen=True)
    class Empty:
        pass

    @make(frozen=True)
    class Hashed:
        a: int

        def __hash__(self) -> int:
            return 7

    @make(frozen=True)
    class Equal:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    @make(frozen=True, order=True)
    class Ordered:
        a: int

    @make(slots=True)
    class Mutable:
        a: int = 0

    @make
    class Loose:
        a: int
        b: list[int] = field(default_factory=list, init=False)
        c: str = field(default="c", init=False)

    @make(eq=False)
    class Unequal:
        a: int

    @make(frozen=True)
    class Late:
        a: int
        b: list[int] = field(default_factory=list, init=False)

    @make
    class Initialised:
        a: int

        def __init__(self) -> None:
            self.a = 1

        def __hash__(self) -> int:
            return 7

    return {name: cls for name, cls in locals().items() if isinstance(cls, type)}


OURS, THEIRS = classes_by(dataclass), classes_by(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (1.5,), {}),
    ("Point", (1.5, 2.0), {"secret": "s", "seen": 4}),
    ("Point", (1.5, 2.0), {"seen": 5, "secret": "s"}),
    ("Point", (1.5,), {"tags": ["a"]}),
    ("Named", (1.5,), {"name": "N"}),
    ("Slotted", ((1, 2),), {}),
    ("Slotted", ((1, 2), "b"), {}),
    ("Keywords", (), {"a": 1}),
    ("Keywords", (), {"a": 1, "b": 2}),
    ("One", (math.nan,), {}),
    ("One", (1.0,), {}),
    ("Empty", (), {}),
    ("Hashed", (1,), {}),
    ("Equal", (1,), {}),
    ("Ordered", (1,), {}),
    ("Ordered", (2,), {}),
    ("Mutable", (2,), {}),
    ("Loose", (1,), {}),
    ("Loose", (2,), {}),
    ("Late", (1,), {}),
    ("Initialised", (), {}),
]


def outcome(work: Callable[..., object], *args: object, **named: object) -> object:
    """Return a value, or the error and its text."""
    try:
        return work(*args, **named)
    except (TypeError, AttributeError) as error:
        return type(error), re.sub(r"\S+\.__init__", "__init__", str(error))


def test_they_read_compare_and_hash_alike() -> None:
    ours, theirs = ([made[name](*args, **named) for name, args, named in CALLS] for made in (OURS, THEIRS))
    for mine, other in zip(ours, theirs, strict=True):
        assert repr(mine) == repr(other)
        assert outcome(hash, mine) == outcome(hash, other)
        assert [(each.name, each.default) for each in dataclasses.fields(mine)] == [
            (each.name, each.default) for each in dataclasses.fields(other)
        ]
        assert type(mine).__match_args__ == type(other).__match_args__
        assert inspect.signature(type(mine)).parameters.keys() == inspect.signature(type(other)).parameters.keys()
        assert hasattr(mine, "__dict__") == hasattr(other, "__dict__")
        assert isinstance(outcome(ref, mine), ref) == isinstance(outcome(ref, other), ref)
        assert dataclasses.asdict(mine).keys() == dataclasses.asdict(other).keys()
    equal = [[one == another for another in ours] for one in ours]
    assert equal == [[one == another for another in theirs] for one in theirs]
    assert OURS["Ordered"](1) < OURS["Ordered"](2)


def test_a_class_that_is_not_frozen_can_be_changed_and_compares_only_if_asked() -> None:
    for made in (OURS, THEIRS):
        value, loose = made["Mutable"](1), made["Loose"](1)
        value.a, loose.new = 2, 3
        assert value == made["Mutable"](2)
        assert loose.b is not made["Loose"](1).b
        assert made["Unequal"](1) != made["Unequal"](1)
        assert hash(made["Unequal"](1)) is not None
        with pytest.raises(AttributeError):
            value.new = 1


@pytest.mark.parametrize(
    ("args", "named"), [((), {}), ((1, 2, 3, 4, 5, 6, 7), {}), ((1,), {"no": 2}), ((1,), {"a": 1})]
)
def test_wrong_arguments_are_refused_alike(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    for name in OURS:
        mine, other = (outcome(made, *args, **named) for made in (OURS[name], THEIRS[name]))
        assert (mine == other) if isinstance(other, tuple) else (repr(mine) == repr(other))


def test_they_are_frozen_replaced_copied_and_pickled() -> None:
    value = Kept((1,), "b")
    for change in (partial(setattr, value, "a", 1), partial(setattr, value, "new", 1), partial(delattr, value, "a")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert dataclasses.replace(value, a=(2,)) == Kept((2,), "b")
    assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    first, second = OURS["Point"](1), OURS["Point"](1)
    assert first.tags is not second.tags
    match value:
        case Kept(a, b):
            assert (a, b) == ((1,), "b")


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that `pickle` can find."""

    a: tuple[int, ...]
    b: str
