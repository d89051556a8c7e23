"""Compressed files that are too large when decompressed, and files with too many values, are refused with the file and
the limit."""

from __future__ import annotations

import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from tests.limits import lower
from workbench.exchange.importers import source_files
from workbench.exchange.importers.source_files import RefusedError, read_source

MB = 1 << 20


def archive(
    folder: Path, *, method: int = zipfile.ZIP_DEFLATED, sample: bytes = b"{}", said: int | None = None
) -> Path:
    """Write a log of Inspect with one sample. With `said`, the archive claims this size for it."""
    file = folder / "log.eval"
    with zipfile.ZipFile(file, "w", method) as log:
        log.writestr("header.json", '{"version":2,"eval":{"task":"t","model":"m"}}')
        log.writestr("samples/a_epoch_1.json", sample)
    if said is not None:
        content = file.read_bytes()
        old, new = (size.to_bytes(4, "little") for size in (len(sample), said))
        assert content.count(old) == 2
        file.write_bytes(content.replace(old, new))
    return file


def refusal(file: Path) -> str:
    with pytest.raises(RefusedError) as refused:
        read_source(file)
    return str(refused.value)


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, source_files, "MAX_FILE_BYTES", MB)
    file = archive(tmp_path, sample=b" " * (MB + 1))
    assert file.stat().st_size < 5_000
    assert refusal(file) == f"{file} unpacked is larger than 1 MiB: split it"


def test_an_archive_that_says_less_than_it_unpacks_to_is_unpacked_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, source_files, "MAX_FILE_BYTES", MB)
    file = archive(tmp_path, sample=b" " * (40 * MB + 7), said=70_001)
    tracemalloc.start()
    assert "is an archive that cannot be unpacked" in refusal(file)
    assert tracemalloc.get_traced_memory()[1] < 2 * MB
    tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_is_packed_as_no_log_is_is_not_unpacked(tmp_path: Path, method: int) -> None:
    assert "is compressed by a method that logs of Inspect do not use" in refusal(
        archive(tmp_path, method=method, sample=b" " * MB)
    )


@pytest.mark.parametrize(
    "sample", [b"[" + b"[]," * 5_000 + b"0]", b'{"' + b'a":"",":' * 5_000 + b'"":0}', b"1," * 9_000]
)
def test_an_archive_of_too_many_values_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: bytes
) -> None:
    lower(monkeypatch, source_files, "MAX_FILE_VALUES", 1_000)
    monkeypatch.setattr(
        source_files, "parsed_json", lambda text: pytest.fail("was parsed") if len(text) > 1_000 else {}
    )
    file = archive(tmp_path, sample=sample)
    assert refusal(file) == f"{file} holds more than 1,000 values: split it"


YAML_BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)
MERGED = "a0: &a0 {a: 1, b: 2}\n" + "".join(
    f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)
WIDE = ",".join("abcdefghij") + "\n" + "1,2,3,4,5,6,7,8,9,0\n" * 200


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("x.yaml", YAML_BOMB, "holds more than 1,000 values"),
        ("x.yaml", "[" * 100_000, "nesting"),
        ("x.yaml", "a: &a [*a]", "is nested more than 100 levels deep"),
        ("x.yaml", f"a: {':'.join(['1'] * 100_000)}", "a number has more than 1,000 characters"),
        ("x.yaml", f"a: {':'.join(['1'] * 400)}.5", "is not YAML"),
        ("x.yaml", f"a: 0x{'f' * 50_000}", "a number has more than 1,000 characters"),
        ("x.yaml", "a: !!timestamp x", "is not YAML"),
        ("x.yaml", "a: !!bool x", "is not YAML"),
        ("x.yaml", "#" * (4 * MB + 1), "is YAML of more than 4 MiB: write it as JSON"),
        ("x.csv", WIDE, "holds more than 1,000 values: split it"),
        ("x.csv", '"' + "a" * 200_000 + '"', "has a cell of more than 131,072 characters: close"),
        ("x.json", "[" + "{}," * 4_000 + "{}]", "x.json holds more than 1,000 values: split it"),
        ("x.json", "[" * 900 + "]" * 900, "is nested more than 100 levels deep"),
        ("x.json", "1" * 5_000, "4300 digits"),
        ("x.json", '"' + '\\"' * 9_000, "is not JSON"),
        ("x.jsonl", '{"a":[1,2,3]}\n' * 900, "x.jsonl holds more than 1,000 values: split it"),
    ],
)
def test_a_text_that_stands_for_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, why: str
) -> None:
    for module in (source_files, source_files):
        lower(monkeypatch, module, "MAX_FILE_VALUES", 1_000)
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert why in refusal(file)


def test_yaml_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = tmp_path / "x.yaml"
    file.write_text("a: 1", encoding="utf-8")
    assert refusal(file) == "is YAML: pip install 'toolcall-workbench[yaml]', or write it as JSON"


def test_merged_keys_are_merged_once(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(MERGED, encoding="utf-8")
    assert read_source(file).root.table()["a8"] == {"a": 1, "b": 2}


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, source_files, "MAX_FILE_BYTES", MB)
    file = tmp_path / "x.json"
    file.write_bytes(b" " * (MB + 1))
    assert refusal(file) == f"{file} is larger than 1 MiB: split it"
