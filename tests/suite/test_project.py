"""A folder of suite files is a project: suites are found in it, everything else is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.suite.project import Search, find_suites

SUITE = 'format = 1\nname = "x"\n'


def placed(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in find_suites([folder])]


def test_a_folder_is_read_recursively_and_sorted_without_hidden_folders(tmp_path: Path) -> None:
    placed(tmp_path, dict.fromkeys(("b.toml", "a/z.toml", "a/b/c.toml", ".hidden/x.toml", "a/.git/y.toml"), SUITE))
    assert names(tmp_path) == ["a/b/c.toml", "a/z.toml", "b.toml"]


def test_a_hidden_folder_is_read_when_it_is_named(tmp_path: Path) -> None:
    placed(tmp_path, {".suites/x.toml": SUITE})
    assert names(tmp_path / ".suites") == ["x.toml"]


INSTALLED = ("venv/pyvenv.cfg", "venv/share/x.toml", "web/node_modules/p/x.toml", "lib/site-packages/p/x.toml")


def test_suites_of_installed_packages_are_skipped_and_their_folders_counted(tmp_path: Path) -> None:
    placed(tmp_path, dict.fromkeys(("a.toml", *INSTALLED), SUITE))
    search = Search()
    assert find_suites([tmp_path], search) == (tmp_path / "a.toml",)
    assert {str(path.relative_to(tmp_path)) for path in search.skipped} == {
        "venv",
        "web/node_modules",
        "lib/site-packages",
    }
    assert search.found == 1 and search.progress_message is None
    assert search.skipped_message is not None and search.skipped_message.startswith("3 folders of installed packages")


@pytest.mark.parametrize("folder", ["venv", "web/node_modules", "lib/site-packages", "lib/site-packages/p"])
def test_installed_packages_are_searched_when_they_are_named(tmp_path: Path, folder: str) -> None:
    placed(tmp_path, dict.fromkeys(INSTALLED, SUITE))
    search = Search()
    assert [path.name for path in find_suites([tmp_path / folder], search)] == ["x.toml"]
    assert search.skipped_message is None


def test_a_stopped_search_has_what_it_found_until_then(tmp_path: Path) -> None:
    placed(tmp_path, dict.fromkeys(("a.toml", "b/b.toml", "b/c/c.toml"), SUITE))
    search = Search()
    below = search.files_below(tmp_path, (".toml",))
    assert next(below) == tmp_path / "a.toml"
    assert search.progress_message == f"0 suites found, searching {tmp_path}"
    search.stop()
    assert list(below) == [] and search.progress_message is None
    assert find_suites([tmp_path], search) == ()


@pytest.mark.parametrize(
    "text",
    [
        SUITE,
        "# a comment\n\n  format=2",
        "\r\nformat = 1\r\n",
        '"format" = 1',
        'format = "1"',
        'name = "x"\nformat = 1\nbroken',
        "[limits]\nformat = 1\n=",
        "tags = [\n" + "'a',\n" * 60_000 + "]\nformat = 1",
    ],
)
def test_a_toml_file_with_a_format_is_a_suite_even_when_it_is_broken(tmp_path: Path, text: str) -> None:
    placed(tmp_path, {"s.toml": text})
    assert names(tmp_path) == ["s.toml"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        'name = "x"',
        "broken",
        "[tool.x]\nformat = 1",
        '[format]\nquote-style = "single"',
        'format = { quote-style = "single" }',
        'format.quote-style = "single"',
        "# format = 1",
        "formats = 1",
        "reformat = 1",
        'text = """\nformat = 1\n"""',
    ],
)
def test_toml_files_without_a_format_are_left_alone(tmp_path: Path, text: str) -> None:
    placed(tmp_path, {"s.toml": text, "s.json": SUITE, "s.toml.bak": SUITE})
    assert names(tmp_path) == []


def test_a_key_that_crosses_the_border_of_two_chunks_is_seen(tmp_path: Path) -> None:
    for length in range((1 << 16) - 14, (1 << 16) + 2):
        (tmp_path / "s.toml").write_text("#" * length + "\nformat = 1\n")
        assert names(tmp_path) == ["s.toml"]


def test_files_that_are_named_are_always_taken_once_and_in_order(tmp_path: Path) -> None:
    placed(tmp_path, {"a.toml": SUITE, "b.toml": "x = 1", "c.txt": ""})
    chosen = [tmp_path / name for name in ("c.txt", "none.toml", "b.toml")]
    assert find_suites([*chosen, tmp_path, chosen[0]]) == (*chosen, tmp_path / "a.toml")


def test_links_never_lead_in_circles_and_dead_ones_are_no_suites(tmp_path: Path) -> None:
    placed(tmp_path, {"a/s.toml": SUITE, "elsewhere/t.txt": SUITE})
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a" / "self.toml").symlink_to(tmp_path / "a" / "self.toml")
    (tmp_path / "a" / ".#s.toml").symlink_to("nobody@nowhere")
    (tmp_path / "a" / "linked.toml").symlink_to(tmp_path / "elsewhere" / "t.txt")
    assert names(tmp_path) == ["a/linked.toml", "a/s.toml"]
