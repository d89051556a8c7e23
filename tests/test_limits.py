"""Every limit on input is in `workbench.limits`, with its reason and a remedy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from workbench import limits
from workbench.limits import Limit

ROOT = Path(__file__).parent.parent
NAMES = [name for name in vars(limits) if name.startswith("MAX_")]
UNITS = {
    *("BYTES", "CHARS", "SECONDS", "MILLISECONDS", "LEVELS", "PAGES", "LINES", "COLUMNS", "ROWS", "COORDINATE"),
    *("REPEATS", "WORKERS", "RUNS", "VIEWERS", "CALLS", "PARTS", "ARGUMENTS", "VALUES", "TOOLS", "TOKENS", "CASES"),
    *("LOOKS", "ITEMS", "PARAMETERS", "FILES", "DRAFTS", "PAUSES", "STARTS", "QUESTIONS", "PAIRS"),
}

BESIDE_THEIR_CODE = {
    "MAX_BUFFERED_BYTES": "above it, a request's body is sent by another method",
    "MAX_PIECE_BYTES": "how much a body is unpacked at a time: nothing is refused",
    "MAX_LOG_BYTES": "what is kept of the program's own log",
    "_MAX_NAME_BYTES": "names of files that this program writes are shortened to it",
    "_MAX_FIELD_BYTES": "follows from the names of the fields of the protocol",
    "_MOST_NEGATIVE": "no limit: the place of a pair that must not be chosen",
}
"""Names like those of limits that bound nothing from outside, and why."""
OLD_NAME = re.compile(r"^_?(LONGEST|MOST|LARGEST|LEAST|SHORTEST|FEWEST|AT_MOST)(_|$)|_(MAX|MIN|MOST|MAX_BYTES)$")
OF_BYTES = re.compile(r"_?MAX_\w*BYTES")
CONSTANTS = re.compile(r"^([A-Z_][A-Z_\d]*(?:, [A-Z_][A-Z_\d]*)*)(?:: [^=\n]+)? = ", re.MULTILINE)


def assigned(file: Path) -> Iterator[tuple[str, ast.stmt | None]]:
    """Yield the constants of a module, each with the statement after it."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for statement, behind in zip(body, [*body[1:], None], strict=False):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Name) and each.id.isupper():
                    yield each.id, behind


def test_every_limit_has_its_unit_and_its_reason() -> None:
    reasons = dict(assigned(ROOT / "workbench" / "limits.py"))
    for name in NAMES:
        assert name.rsplit("_", 1)[1] in UNITS, name
        behind = reasons[name]
        assert isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant), name
        assert len(str(behind.value.value).split()) > 5, name


def test_every_limit_that_a_user_reaches_says_the_limit_and_a_way_out() -> None:
    for name in NAMES:
        limit = getattr(limits, name)
        if isinstance(limit, Limit):
            assert "{limit}" in limit.happened or "{mib}" in limit.happened or limit is limits.MAX_FIELD_CHARS, name
            is_range = "1 to {limit}" in limit.happened
            by_model = limit.happened.startswith("the model sent too much")
            assert bool(limit.way_out) is not (is_range or by_model), name


def test_every_limit_is_used() -> None:
    used = set()
    for file in (ROOT / "workbench").rglob("*.py"):
        if file.name != "limits.py":
            used |= set(re.findall(r"\bMAX_\w+", file.read_text(encoding="utf-8")))
    assert set(NAMES) <= used


def test_limits_are_named_alike_and_those_of_bytes_stand_in_one_file() -> None:
    """Limits of a layout or an algorithm are next to it, and also begin with MAX or MIN. Reports and the app's lines
    are excluded, because their names say what their widths cut."""
    found = []
    for file in sorted((ROOT / "workbench").rglob("*.py")):
        place = file.relative_to(ROOT / "workbench")
        if place.parts[0] in ("limits.py", "show") or place.parts[:2] == ("tui", "lines"):
            continue
        constants = [
            name for names in CONSTANTS.findall(file.read_text(encoding="utf-8")) for name in names.split(", ")
        ]
        names = [name for name in constants if OLD_NAME.search(name) or OF_BYTES.fullmatch(name)]
        found += [f"{place}: {name}" for name in names if name not in BESIDE_THEIR_CODE]
    assert not found
