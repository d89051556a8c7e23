"""Each term of the glossary is defined once, and the code that it names exists."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel

PAGE = Path(__file__).parent.parent / "docs" / "glossary.md"
TERM = re.compile(r"^- \*\*(.+)\*\*: .+ \(`([\w.]+)`\)$", re.MULTILINE)
ROWS = TERM.findall(PAGE.read_text(encoding="utf-8"))


def exists(name: str) -> bool:
    """Return whether a dotted name below `workbench` is a definition, a member of a class, or a field of a record."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: object = import_module("workbench." + ".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            fields = getattr(found, "__annotations__", {}) if is_dataclass(found) else {}
            if isinstance(found, type) and issubclass(found, BaseModel):
                fields = found.model_fields
            if not hasattr(found, part) and part not in fields and not _is_set_by_init(found, part):
                return False
            found = getattr(found, part, None)
        return True
    return False


def _is_set_by_init(found: object, name: str) -> bool:
    """Exceptions set their attributes in `__init__`."""
    init = getattr(found, "__init__", None)
    return isinstance(found, type) and name in getattr(getattr(init, "__code__", None), "co_names", ())


def test_the_code_of_every_term_exists() -> None:
    assert len(ROWS) > 60
    assert [name for _, name in ROWS if not exists(name)] == []


def test_each_term_is_defined_once_and_in_order() -> None:
    terms = [term for term, _ in ROWS]
    assert len(terms) == len(set(terms))
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        listed = [term for term, _ in TERM.findall(section)]
        assert listed == sorted(listed, key=str.lower)
