"""A suite is identified by its project and path, or by its path alone if that is unambiguous."""

from __future__ import annotations

from tests.tables import each_row
from workbench.history.records import SuiteRef, same_suites


def suites(*files: str) -> list[SuiteRef]:
    """Each `PROJECT s.toml`."""
    refs = []
    for number, file in enumerate(files):
        project, path = file.split()
        refs.append(SuiteRef(number, project, path, "hash", path, 1))
    return refs


@each_row(
    ("earlier", "later", "same"),
    [
        (["/a s.toml"], ["/a s.toml"], {"/a/s.toml": "/a/s.toml"}),
        (["/a s.toml"], ["/b s.toml"], {"/a/s.toml": "/b/s.toml"}),
        (["/a s.toml", "/a s.toml"], ["/b s.toml"], {"/a/s.toml": "/b/s.toml"}),
        (["/a s.toml"], ["/b t.toml"], {}),
        (["/a s.toml", "/b s.toml"], ["/a s.toml"], {}),
        (["/a s.toml"], ["/b s.toml", "/c s.toml"], {}),
        (["/a s.toml", "/a t.toml"], ["/b t.toml", "/b s.toml"], {"/a/s.toml": "/b/s.toml", "/a/t.toml": "/b/t.toml"}),
    ],
)
def test_which_suite_is_the_same(earlier: list[str], later: list[str], same: dict[str, str]) -> None:
    assert same_suites(suites(*earlier), suites(*later)) == same
