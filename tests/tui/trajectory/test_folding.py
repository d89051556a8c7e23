"""Long results are folded, and copied whole."""

from __future__ import annotations

from workbench.show.spans import plain
from workbench.show.views.copied_text import copied_text
from workbench.show.views.run_items import CallItem, ResultItem
from workbench.show.views.run_lines import lines_of
from workbench.trajectory.events import ResultReceived


def test_a_long_result_is_folded_until_it_is_expanded() -> None:
    content = '{"rows": [' + ", ".join(str(number) for number in range(200)) + "]}"
    item = ResultItem(ResultReceived("a", content, False, "server", 40.0))
    folded = [plain(line) for line in lines_of(item, 60)]
    assert len(folded) == 5
    assert folded[-1].strip().endswith("more lines, Enter shows them")
    expanded = [plain(line) for line in lines_of(item, 60, expanded=True)]
    assert expanded[1].strip() == "{"
    assert len(expanded) > 200


def test_copying_yields_everything_unshortened() -> None:
    content = "x" * 500_000
    assert copied_text(ResultItem(ResultReceived("a", content, False, "server", 1.0))) == (content, "the result")
    call = CallItem("a", "t", 0, arguments={"n": 1})
    assert copied_text(call) == ('t {"n": 1}', "the call")


def test_a_single_line_is_never_folded_and_of_a_huge_value_its_size_is_said() -> None:
    first = "1" * 50 + "\n"

    def folded(content: str) -> list[str]:
        return [plain(line) for line in lines_of(ResultItem(ResultReceived("a", content, False, "server", 40.0)), 60)]

    assert folded(f"{first}2\n3\n4")[-1].strip() == "4"
    assert folded(f"{first}2\n3\n4\n5")[-1].strip() == "… 2 more lines, Enter shows them"
    assert folded("123456 " * 150_000)[-1].strip() == "… 1,050,000 characters in all, Enter shows more"
