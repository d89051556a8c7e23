"""What delta debugging leaves: no single piece can be left out, also of pieces that are needed together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.causes import Cause
from workbench.lab.shrink import Document, shrink


def document(words: list[str]) -> Document:
    return {"cases": [{"name": "c", "user": " ".join(words)}]}


@given(st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, size - 1), max_size=5))))
def test_exactly_what_is_needed_together_is_left(drawn: tuple[int, set[int]]) -> None:
    size, needed = drawn
    tried: list[int] = []

    def fails(made: Document) -> bool:
        words = set(made["cases"][0]["user"].split())
        tried.append(len(words))
        return {f"w{at}" for at in needed} <= words

    shrunk = shrink(document([f"w{at}" for at in range(size)]), ("wrong tool", None), (), fails)
    assert shrunk.complete
    assert shrunk.document["cases"][0]["user"].split() == [f"w{at}" for at in sorted(needed)]
    assert len(tried) <= 3 + (len(needed) + 1) * 2 * (size.bit_length() + 2) + len(needed) ** 2


def test_a_request_is_not_shortened_where_silence_would_fail_in_the_same_way() -> None:
    causes: list[Cause] = ["gave up", "missing call", "content"]
    for cause in causes:
        shrunk = shrink(document(["a", "b"]), (cause, None), (), lambda _: True)
        assert shrunk.document["cases"][0]["user"] == "a b"
