"""The images of cases: files in the suite's folder, whose type is detected from their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from workbench.limits import MAX_MEDIA_BYTES
from workbench.suite.model import Case, Suite
from workbench.suite.problems import Finding
from workbench.suite.suite_folder import FolderFileError, open_in_folder, read_error_text
from workbench.trajectory.media import Media, media_of, media_type_of

_HEAD_BYTES = 16


class ImageError(Exception):
    """A file of a case cannot be used as its image."""


def images_of(case: Case, folder: Path) -> tuple[Media, ...]:
    """Return the images of a case with their content. `folder` is the suite's folder.

    Raises ImageError with a message that names the file."""
    images = []
    for image in case.images:
        try:
            with open_in_folder(folder, image.file, MAX_MEDIA_BYTES) as file:
                content = file.read(MAX_MEDIA_BYTES + 1)
            if len(content) > MAX_MEDIA_BYTES:
                raise FolderFileError(MAX_MEDIA_BYTES.reached())
            found = media_of(content, image.file)
            if found is None or not found.is_image:
                raise _no_image()
        except FolderFileError as error:
            advice = f": {error.hint}" if error.hint else ""
            raise ImageError(f"the image {image.file} of the case {case.name!r} {error}{advice}") from error
        except OSError as error:
            raise ImageError(f"the image {image.file} of the case {case.name!r} {read_error_text(error)}") from error
        images.append(found)
    return tuple(images)


def image_findings(suite: Suite, folder: Path) -> Iterator[Finding]:
    """Find images that do not exist, lead out of the suite's folder, are too large, or are not images."""
    for number, case in enumerate(suite.cases):
        for index, image in enumerate(case.images):
            place = ("cases", number, "images", index, "file")
            try:
                with open_in_folder(folder, image.file, MAX_MEDIA_BYTES) as file:
                    media_type = media_type_of(file.read(_HEAD_BYTES))
                if media_type is None or not media_type.startswith("image/"):
                    raise _no_image()
            except FolderFileError as error:
                yield Finding(place, f"{image.file} {error}", error.hint)
            except OSError as error:
                yield Finding(
                    place, f"{image.file} {read_error_text(error)}", "check the path, from the suite's folder"
                )


def images_hash(suite: Suite | None, folder: Path) -> str:
    """Return a hash over the content of a suite's images, or an empty text if the suite has no images."""
    files: list[str] = []
    if suite is not None:
        for case in suite.cases:
            files += [image.file for image in case.images]
    if not files:
        return ""
    digest = hashlib.sha256()
    for name in dict.fromkeys(files):
        try:
            with open_in_folder(folder, name, MAX_MEDIA_BYTES) as file:
                content = hashlib.sha256(file.read()).hexdigest()
        except (FolderFileError, OSError):
            content = ""
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def _no_image() -> FolderFileError:
    return FolderFileError("is not an image that models take", "save it as PNG, JPEG, GIF or WebP")
