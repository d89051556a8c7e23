"""The pages of `docs/` and of the root lead nowhere that is not there, and show every picture that is drawn."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.tables import each_row

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ALL_PAGES = [*sorted(ROOT.glob("*.md")), *PAGES]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def links_of(page: Path) -> list[str]:
    """Return the targets of a page's links, except for web addresses."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(text) if "://" not in link]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_row("page", ALL_PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target), link


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(ROOT / "docs").as_posix() for page in PAGES)


def test_every_page_is_reached_from_the_front_page_and_that_from_the_readme() -> None:
    assert "docs/index.md" in links_of(ROOT / "README.md")
    named = {"index.md", *(link.partition("#")[0] for link in links_of(ROOT / "docs" / "index.md"))}
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name not in named] == []


def test_every_picture_is_drawn_and_shown() -> None:
    drawn = {
        f"{picture.name}.svg" for picture in runpy.run_path(str(ROOT / "docs" / "make_pictures.py"))["ALL_PICTURES"]
    }
    kept = {file.name for file in (ROOT / "docs" / "pictures").iterdir()}
    shown = {Path(link).name for page in ALL_PAGES for link in links_of(page) if link.endswith((".svg", ".png"))}
    in_browser = {"html-report.png", "html-run.png", "serve.png"}  # docs/make_html_pictures.py needs Chromium
    assert drawn | in_browser == kept
    assert in_browser <= shown
    shown -= in_browser
    assert shown <= drawn


@pytest.mark.parametrize("script", ["make_keys.py", "make_command_line.py"])
def test_a_page_that_a_script_makes_is_up_to_date(script: str) -> None:
    made = runpy.run_path(str(ROOT / "docs" / script))
    assert made["PAGE"].read_text(encoding="utf-8") == made["made_page"](), f"run: python docs/{script}"
