"""Reads the images of cases: files in the folder of the suite, known by their content."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from workbench.limits import MAX_MEDIA_BYTES
from workbench.suite.model import Case, Suite
from workbench.suite.problems import Finding
from workbench.trajectory.media import Media, media_of, media_type_of

_HEAD_BYTES = 16


class ImageError(Exception):
    """A file cannot be an image of a case; the message is the predicate of a sentence about it, `hint` is advice."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def images_of(case: Case, folder: Path) -> tuple[Media, ...]:
    """Return the images of a case with their content; `folder` is that of the suite.

    Raises ImageError, whose message names the file."""
    images = []
    for image in case.images:
        try:
            with _opened(folder, image.file) as file:
                content = file.read(MAX_MEDIA_BYTES + 1)
            if len(content) > MAX_MEDIA_BYTES:
                raise ImageError(MAX_MEDIA_BYTES.reached())
            found = media_of(content, image.file)
            if found is None or not found.is_image:
                raise _no_image()
        except ImageError as error:
            advice = f": {error.hint}" if error.hint else ""
            raise ImageError(f"the image {image.file} of the case {case.name!r} {error}{advice}") from error
        except OSError as error:
            raise ImageError(f"the image {image.file} of the case {case.name!r} {_unreadable(error)}") from error
        images.append(found)
    return tuple(images)


def image_findings(suite: Suite, folder: Path) -> Iterator[Finding]:
    """Find images of cases that are not there, lead out of the suite's folder, are too large, or are not images."""
    for number, case in enumerate(suite.cases):
        for index, image in enumerate(case.images):
            place = ("cases", number, "images", index, "file")
            try:
                with _opened(folder, image.file) as file:
                    media_type = media_type_of(file.read(_HEAD_BYTES))
                if media_type is None or not media_type.startswith("image/"):
                    raise _no_image()
            except ImageError as error:
                yield Finding(place, f"{image.file} {error}", error.hint)
            except OSError as error:
                yield Finding(place, f"{image.file} {_unreadable(error)}", "check the path, from the suite's folder")


def images_hash(suite: Suite | None, folder: Path) -> str:
    """Return a hash of the content of all images of a suite; empty without images."""
    files: list[str] = []
    if suite is not None:
        for case in suite.cases:
            files += [image.file for image in case.images]
    if not files:
        return ""
    digest = hashlib.sha256()
    for name in dict.fromkeys(files):
        try:
            with _opened(folder, name) as file:
                content = hashlib.sha256(file.read()).hexdigest()
        except (ImageError, OSError):
            content = ""
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def _opened(folder: Path, name: str) -> BinaryIO:
    """Open a file in a folder.

    Raises OSError, and ImageError for a file that is elsewhere, is not a regular file, or is too large."""
    try:
        root = folder.resolve()
        path = (root / name).resolve()
    except ValueError as error:
        raise ImageError("cannot be a path: it holds a null character") from error
    except RuntimeError as error:
        raise ImageError("is a link that leads back to itself") from error
    if not path.is_relative_to(root):
        raise ImageError("leads out of the folder of the suite", "copy the file into that folder")
    # Links are resolved already: one that appears meanwhile is refused. A pipe must not be waited for.
    for_reading = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, for_reading)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_MEDIA_BYTES:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ImageError("is not a regular file")
    raise ImageError(MAX_MEDIA_BYTES.exceeded(), MAX_MEDIA_BYTES.way_out)


def _no_image() -> ImageError:
    return ImageError("is not an image that models take", "save it as PNG, JPEG, GIF or WebP")


def _unreadable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    return f"cannot be read: {error.strerror or error}"
