"""Pasted text is text, however it arrives and whatever stands in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.tui.pasting import END, START, Pastes, harmless

TYPED = st.text(st.sampled_from("ab\x1b[2OA~\r"), max_size=8).filter(lambda text: "200~" not in text)
PASTED = st.text(st.sampled_from("ab\x1b[201m\r\n\t\x9b"), max_size=20).filter(lambda text: END not in text)


def read(chunks: list[str]) -> list[tuple[str, bool]]:
    pastes = Pastes()
    return [piece for chunk in chunks for piece in pastes.split(chunk, more=True)]


@given(TYPED, PASTED, TYPED, st.lists(st.integers(1, 6), max_size=60))
def test_a_paste_is_one_text_however_it_is_cut(before: str, pasted: str, after: str, sizes: list[int]) -> None:
    if START in (before + START)[:-1] or (pasted + END).index(END) != len(pasted):
        return
    text, chunks = before + START + pasted + END + after, list[str]()
    for size in sizes:
        chunks, text = [*chunks, text[:size]], text[size:]
    # A last key, so that nothing that looks like the beginning of a mark is waited for.
    pieces = read([*chunks, text, "x"])
    assert [piece for piece, is_paste in pieces if is_paste] == [harmless(pasted)]
    assert "".join(piece for piece, is_paste in pieces if not is_paste) == before + after + "x"


def test_escape_sequences_in_a_paste_are_no_keys() -> None:
    assert read([f"{START}a\x1b[31mb\x1b\r\nc{END}"]) == [("a[31mb\nc", True)]


def test_the_escape_key_is_not_waited_for() -> None:
    assert list(Pastes().split("\x1b", more=False)) == [("\x1b", False)]
