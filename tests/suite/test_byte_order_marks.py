"""Suites with a byte order mark are read, edited and saved with it; UTF-16 is named with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.authoring.document import Document
from workbench.suite.added_variants import AddedVariantError, prompt_variant, variants_in
from workbench.suite.project import find_suites
from workbench.suite.suite_file import load_suite, parse_suite

MARK = "\ufeff"
SUITE = """# About the suite
format = 1
name = "S"

[[cases]]
name = "One"
user = "Hello"

# About the second
[[cases]]
name = "Two"
user = "Bye"
"""


@pytest.fixture(params=["\n", "\r\n"], ids=["LF", "CRLF"])
def text(request: pytest.FixtureRequest) -> str:
    ending: str = request.param
    return MARK + SUITE.replace("\n", ending)


def test_a_mark_is_kept_in_the_text_and_changes_nothing_else(text: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_bytes(text.encode())
    loaded, plain = load_suite(file), parse_suite(text.removeprefix(MARK), file)
    assert loaded.suite == plain.suite is not None
    assert loaded.text == text
    assert loaded.positions == plain.positions
    assert parse_suite(text, file).hash == loaded.hash
    assert find_suites([tmp_path]) == (file,)
    assert parse_suite(MARK + " \n", file).problems[0].message == "the file is empty"


def test_problems_have_the_same_places_with_a_mark() -> None:
    broken = SUITE.replace('user = "Hello"', "user = 5").replace('name = "S"', 'naem = "S"')
    plain, marked = (parse_suite(mark + broken, Path("s.toml")) for mark in ("", MARK))
    assert plain.problems == marked.problems != ()


def test_every_edit_keeps_the_mark(text: str) -> None:
    document = Document.of(text)
    ending = "\r\n" if "\r\n" in text else "\n"
    case = document.table(1)
    edits = [
        document.with_case(0, {"name": "One", "user": "Hi"}),
        document.with_header("name", "Other"),
        document.with_new_case(0, case | {"name": "Three"}),
        document.without_case(0),
        document.with_case_moved(0, 1),
        document.with_block(0, '[[cases]]\nname = "One"\nuser = "Hi"\n'),
    ]
    for edited in edits:
        assert edited.text.count(MARK) == 1 and edited.text.startswith(f"{MARK}# About the suite{ending}format = 1")
        assert parse_suite(edited.text, Path("s.toml")).suite is not None
        assert edited.text != text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_suite_in_utf_16_is_named_with_the_way_out(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    content = SUITE.encode(encoding)
    if encoding == "utf-16-be":
        content = b"\xfe\xff" + content
    file.write_bytes(content)
    assert find_suites([tmp_path]) == (file,)
    [problem] = load_suite(file).problems
    assert str(problem).endswith("s.toml:1: error: is UTF-16, not UTF-8 (save the file as UTF-8, in PowerShell with "
                                 "`-Encoding utf8`)")  # fmt: skip


def test_variants_and_prompts_may_have_a_mark(tmp_path: Path) -> None:
    variants, prompt = tmp_path / "v.toml", tmp_path / "brief.txt"
    variants.write_bytes(f'{MARK}[[variants]]\nname = "brief"\nsystem = "Be brief."\n'.encode())
    assert variants_in(variants) == ({"name": "brief", "system": "Be brief."},)
    prompt.write_bytes(f"{MARK}Be brief.\r\nBe kind.\r\n".encode())
    assert prompt_variant(prompt) == {"name": "brief", "system": "Be brief.\nBe kind."}
    prompt.write_bytes("Be brief.".encode("utf-16"))
    with pytest.raises(AddedVariantError, match=r"brief.txt is UTF-16, not UTF-8: save the file as UTF-8"):
        prompt_variant(prompt)
