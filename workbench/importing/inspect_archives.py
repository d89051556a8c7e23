"""Unpacks the `.eval` files of Inspect: zip archives of the parts of a log."""

from __future__ import annotations

import importlib
import zipfile
from functools import partial
from io import BytesIO
from pathlib import Path

from workbench.importing.bounds import FewValues, RefusedError
from workbench.limits import MAX_FILE_BYTES
from workbench.trajectory.messages import JsonValue

_STEP_BYTES = 4_096
"""So many are unpacked at once: an archive may say less of a part than what that expands to."""
_ZSTANDARD = 93
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)


def log_of_archive(path: Path, content: bytes) -> JsonValue:
    """Returns the log that a `.eval` file holds, as its `.json` would. Raises ValueError and RefusedError, which say
    what to do."""
    how = f"make a .json of it: inspect log convert --to json --output-dir . {path.name}"
    few = FewValues(path)
    try:
        with _archive(content) as archive:
            parts = {info.filename: info for info in archive.infolist()}
            head = next((parts[name] for name in ("header.json", "_journal/start.json") if name in parts), None)
            if head is None:
                raise ValueError("it has no header.json, so it is no log of Inspect")
            names = sorted(name for name in parts if name.startswith("samples/") and name.endswith(".json"))
            samples = [parts[name] for name in names]
            if sum(part.file_size for part in (head, *samples)) > MAX_FILE_BYTES:
                raise RefusedError(f"unpacked {MAX_FILE_BYTES.reached()}", file=path)
            log = few.parsed(_unpacked(archive, head))
            return (log if isinstance(log, dict) else {}) | {
                "samples": [few.parsed(_unpacked(archive, part)) for part in samples]
            }
    except RefusedError:
        raise
    except NotImplementedError as error:
        raise ValueError(f"is packed with Zstandard: install backports.zstd, or {how}") from error
    except Exception as error:  # of a broken archive, each method has errors of its own
        raise ValueError(f"is an archive that cannot be unpacked, {error}; of a log, {how}") from error


def _unpacked(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> str:
    if part.compress_type not in _METHODS:
        raise ValueError(f"{part.filename} is packed in a way that logs of Inspect are not")
    with archive.open(part) as file:
        return b"".join(iter(partial(file.read, _STEP_BYTES), b"")).decode()


def _archive(content: bytes) -> zipfile.ZipFile:
    """Returns an archive. `zipfile` has Zstandard from Python 3.14 on; `backports.zstd` has it before."""
    try:
        module = importlib.import_module("backports.zstd.zipfile")
    except ImportError:
        module = zipfile
    found: zipfile.ZipFile = module.ZipFile(BytesIO(content))
    return found
