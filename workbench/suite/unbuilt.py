"""Parts of suite format 1 that this version cannot run yet.

`validate` warns of them, and a case that needs one ends as an error that names the key. What gets built is taken off
here.
"""

from __future__ import annotations

from workbench.suite.model import Case


def unbuilt_parts(case: Case) -> tuple[str, ...]:
    """The keys of a case that keep this version from running it."""
    return ("steps",) if case.steps else ()
