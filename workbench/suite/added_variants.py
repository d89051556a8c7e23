"""Variants that a batch adds to a suite: from a file, from a system prompt, or from the built-in MCP hosts.

The variants are added to the suite's text in memory. A run stores this text, so the stored suite includes the
variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from workbench.encoding import BYTE_ORDER_MARK, SAVE_AS_UTF_8, toml_of, utf_8_problem
from workbench.suite.render import block_text
from workbench.suite.suite_file import SuiteFile, parse_suite


class AddedVariantError(ValueError):
    """Variants cannot be added to a suite. The message names the file of the variants."""


def variants_in(file: Path) -> tuple[Mapping[str, object], ...]:
    """Return the variants of a TOML file: its `[[variants]]`, or the whole file as one variant.

    Raises AddedVariantError if the file cannot be read, is not TOML, or holds anything but variants."""
    try:
        read = file.read_bytes()
        content = toml_of(read.decode())
    except OSError as error:
        raise AddedVariantError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise AddedVariantError(f"{file} {utf_8_problem(read, error)[1]}: {SAVE_AS_UTF_8}") from error
    except ValueError as error:
        raise AddedVariantError(f"{file} is not TOML: {error}") from error
    tables = content.pop("variants", None)
    if tables is None:
        tables, content = [content], {}
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        ways = "write [[variants]] and nothing beside them, or the keys of one variant"
        raise AddedVariantError(f"{file} must hold only variants: {ways}")
    return tuple(tables)


def prompt_variant(file: Path) -> Mapping[str, object]:
    """Return a variant with the content of a file as system prompt, named after the file.

    Raises AddedVariantError for a file that is empty or cannot be read."""
    try:
        read = file.read_bytes()
        text = read.decode().removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n").strip()
    except OSError as error:
        raise AddedVariantError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise AddedVariantError(f"{file} {utf_8_problem(read, error)[1]}: {SAVE_AS_UTF_8}") from error
    if not text:
        raise AddedVariantError(f"{file} is empty: write a system prompt into it")
    return {"name": file.stem, "system": text}


def with_variants(file: SuiteFile, tables: Iterable[Mapping[str, object]], origin: str) -> SuiteFile:
    """Return a suite with further variants, appended to its text in memory.

    `origin` names the source of the variants in errors. Raises AddedVariantError with the first problem of the extended
    suite."""
    text = file.text.rstrip("\n")
    try:
        for table in tables:
            text += f"\n\n{block_text(('variants',), table, of_array=True)}"
    except ValueError as error:
        raise AddedVariantError(f"{origin}: {error}") from error
    added = parse_suite(f"{text}\n", file.path)
    if added.suite is None:
        problem = added.errors[0]
        raise AddedVariantError(f"{origin} does not fit {file.path}: {problem.message}")
    return added


# The built-in variants imitate MCP hosts, which add prompts and tools of their own to the tools of a suite.

HOST_LIBRARY = "the library of hosts"
"""The words by which messages call the built-in variants."""

HOST_NAMES = frozenset({"no prompt", "concise assistant", "coding agent", "forty tools"})
"""The names of the variants in the library."""


def host_variants() -> tuple[Mapping[str, object], ...]:
    """Return the built-in variants that imitate MCP hosts, as `[[variants]]` tables."""
    # Lazy import: `importlib.resources` is slow to import, and few batches add these variants.
    from importlib.resources import files

    text = files("workbench.suite").joinpath("hosts.toml").read_text(encoding="utf-8")
    return tuple(toml_of(text)["variants"])
