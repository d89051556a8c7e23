"""All uses of Textual's private names are in `tui/terminal`, and match the tested version."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import textual

import workbench.tui
from tests.tables import each_row

APP = Path(workbench.tui.__path__[0])
TEXTUAL = Path(textual.__path__[0])

REPLACED = {
    "Compositor.render_update": "0ad323b75181",
    "MessagePump._dispatch_message": "2ea2e61753af",
    "Screen._compositor_refresh": "30c01d22baee",
    "Screen._on_screen_resume": "e00b4ec53a62",
    "Screen._refresh_layout": "d5155dd0cae6",
    "Screen._screen_resized": "5225534965f9",
    "Widget._get_box_model": "862640e50f91",
    "Widget.render_lines": "d3a6999d1182",
}
"""The replaced methods of Textual, each with a digest of the inspected version.

If one has changed, read the new version, change its replacement, and take the digest from the failure."""

PRIVATE = {
    "KeyQueueApp._check_bindings",
    "StagedApp._background_screens",
    "StagedApp._display",
    "StagedApp._handle_exception",
    "TolerantDriver._get_terminal_size",
    "TolerantDriver._sigcont_application",
    "TolerantDriver._sigtstp_application",
    "_auto_restart",
    "_batch_count",
    "_bindings",
    "_cache",
    "_compositor",
    "_debug",
    "_dirty_lines",
    "_dirty_regions",
    "_driver",
    "_exit",
    "_is_mounted",
    "_key_thread",
    "_next_callbacks",
    "_regions_to_spans",
    "_repaint_required",
    "textual._ansi_sequences",
    "textual._compositor",
    "textual._context",
    "textual._keyboard_protocol",
    "textual._parser",
    "textual._styles_cache",
    "textual._xterm_parser",
}
"""The private modules and names of Textual that are used."""

_OF_CLASSES = {"_abc_impl", "_merged_bindings", "_reactives", "_computes", "_decorated_handlers"}
"""The attributes that Textual gives every class."""


def files(*, terminal: bool) -> Iterator[tuple[str, str]]:
    for path in sorted(APP.rglob("*.py")):
        if ("terminal" in path.parts) is terminal:
            yield path.relative_to(APP).as_posix(), path.read_text(encoding="utf-8")


def imported_from_textual(text: str) -> Iterator[tuple[str, str]]:
    """The modules of Textual that a file imports from, each with a name."""
    for module, names in IMPORTED.findall(text):
        yield from ((module, name) for name in re.findall(r"\w+", re.sub(r" as \w+|#.*", "", names)))


def replaced_in(text: str) -> Iterator[str]:
    """The attributes of Textual's classes to which a file assigns."""
    classes = {name for _, name in imported_from_textual(text)}
    yield from (f"{kind}.{name}" for kind, name in ASSIGNED.findall(text) if kind in classes)


# The sources are searched by patterns, because parsing them takes seconds.
IMPORTED = re.compile(r"^ *from (textual[\w.]*) import (\([^)]+\)|.+)", re.MULTILINE)
ASSIGNED = re.compile(r"^ *([A-Z]\w*)\.(\w+)(?::[^=\n]+)? = ", re.MULTILINE)
DEFINED = re.compile(r"\bdef (_[a-z]\w*)|\b(_[a-z]\w*)(?:, [\w., ]+|: [^=\n]+)? = ")
USED = re.compile(r"(?<!os)(?<!textual)\.(_[a-z]\w*)")


@cache
def private_names_of_textual() -> set[str]:
    """The private names that Textual defines and the app does not."""
    return defined_below(TEXTUAL) - defined_below(APP) - defined_below(APP.parent / "show")


def defined_below(folder: Path) -> set[str]:
    """The private functions, attributes and variables that the files of a folder define."""
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    return {function or variable for text in texts for function, variable in DEFINED.findall(text)}


def private_in(text: str) -> Iterator[str]:
    """The private modules of Textual, and private names of it alone, that a file uses."""
    yield from (module for module, _ in imported_from_textual(text) if "._" in module)
    yield from private_names_of_textual().intersection(USED.findall(text))


def overridden(*, terminal: bool) -> set[str]:
    """Return the private names of Textual's classes that classes of the app redefine."""
    found = set()
    for module in pkgutil.walk_packages(workbench.tui.__path__, "workbench.tui."):
        for kind in vars(importlib.import_module(module.name)).values():
            if (
                not inspect.isclass(kind)
                or kind.__module__ != module.name
                or (".terminal." in module.name) is not terminal
            ):
                continue
            theirs = [base for base in kind.__mro__ if base.__module__.split(".")[0] == "textual"]
            names = [name for name in vars(kind) if name.startswith("_") and not name.startswith(("__", "_default_"))]
            own = [name for name in names if not name.startswith(("_css_", "_inherit_")) and name not in _OF_CLASSES]
            found |= {f"{kind.__name__}.{name}" for name in own if any(name in vars(base) for base in theirs)}
    return found


def test_nothing_but_the_terminal_touches_the_inside_of_textual() -> None:
    found = {name: {*private_in(text), *replaced_in(text)} for name, text in files(terminal=False)}
    assert {name: private for name, private in found.items() if private} == {}
    assert overridden(terminal=False) == set()


def test_what_is_used_of_the_inside_is_listed() -> None:
    used = {private for _, text in files(terminal=True) for private in private_in(text)}
    assert used | overridden(terminal=True) == PRIVATE
    assert {method for _, text in files(terminal=True) for method in replaced_in(text)} == REPLACED.keys()


@each_row("method", REPLACED)
def test_a_replaced_method_is_the_one_that_was_tested(method: str) -> None:
    kind, name = method.split(".")
    path = next(
        TEXTUAL / f"{module}.py"
        for _, source in files(terminal=True)
        for module, imported in (
            (m.removeprefix("textual.").replace(".", "/"), n) for m, n in imported_from_textual(source)
        )
        if imported == kind
    )
    text = path.read_text(encoding="utf-8")
    (source,) = (
        ast.get_source_segment(text, each) or ""
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.name == kind
        for each in node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name
    )
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    assert digest == REPLACED[method], f"Textual changed {method}: {digest}"
