"""Names for suite files, as they are typed in dialogs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def named_path(folder: Path, text: str, why_not: Callable[[Path], str | None]) -> Path | str:
    """The path that a text names, relative to a folder and with `.toml` where it has no ending; or why it will not do,
    as a sentence without its end. `why_not` may look at the disk, and says what else is wrong."""
    try:
        path = folder / Path(text).expanduser()
        if path.name == "..":
            raise ValueError(path)
        path = path if path.suffix else path.with_suffix(".toml")
        return why_not(path) or path
    except RuntimeError:  # of expanduser
        return f"there is no home folder for {Path(text).parts[0]}"
    except ValueError:
        return f"{text} names no file"
    except OSError as error:
        return f"{text} cannot be looked at: {error.strerror or error}"
