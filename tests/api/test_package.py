"""The package is light to import and complete, and its docstrings' examples are true."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import workbench
from tests.cli.forking import write_forked_python

ROOT = Path(__file__).parents[2]
MODULES = [f"workbench.api.{file.stem}" for file in sorted((ROOT / "workbench" / "api").glob("[!_]*.py"))]
MODULES += ["workbench.agents", "workbench.providers.function", "workbench.providers.own_agent"]


def imported_after(code: str) -> set[str]:
    program = f"import sys; before = set(sys.modules)\n{code}\nprint(*(set(sys.modules) - before))"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_the_package_imports_nothing_else() -> None:
    assert imported_after("import workbench") == imported_after("import __future__") | {"workbench"}
    loaded = imported_after("import workbench; workbench.load")
    assert not loaded & {"asyncio", "aiohttp", "httpx2", "openai", "anthropic", "mcp", "textual", "sqlite3"}


def test_every_public_name_is_typed_and_there() -> None:
    tree = ast.parse((ROOT / "workbench" / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == {name: module for module, names in workbench._MODULES.items() for name in names}
    assert sorted(typed) == sorted(workbench.__all__)
    assert set(workbench.__all__) <= set(dir(workbench))
    for name, module in typed.items():
        assert getattr(workbench, name) is getattr(import_module(module or ""), name)
    assert (ROOT / "workbench" / "py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = workbench.evaluat  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_show_what_happens(module: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(write_forked_python(folder.parent / "python")))
    failed, _ = doctest.testmod(import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert failed == 0


def test_every_public_function_has_an_example() -> None:
    for name in workbench.__all__:
        value = getattr(workbench, name)
        if callable(value) and not isinstance(value, type) and name not in ("ALL", "TRUSTED"):
            assert ">>> " in (value.__doc__ or ""), name
