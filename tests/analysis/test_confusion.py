"""The tools that models called in place of the expected ones."""

from __future__ import annotations

from workbench.analysis.failures import confusion_of


def test_equal_tools_belong_together_whatever_their_order() -> None:
    assert confusion_of([(["a", "b"], ["b", "a"])]).counts == {("a", "a"): 1, ("b", "b"): 1}


def test_what_is_left_is_paired_in_order() -> None:
    counts = confusion_of([(["a", "b", "c"], ["b", "x", "y"])]).counts
    assert counts == {("b", "b"): 1, ("a", "x"): 1, ("c", "y"): 1}


def test_what_has_no_partner_was_no_call_or_not_expected() -> None:
    assert confusion_of([(["a"], []), ([], ["b", "b"])]).counts == {("a", None): 1, (None, "b"): 2}


def test_names_that_providers_bend_are_one_tool() -> None:
    assert confusion_of([(["Mail.Send"], ["mail_send"])]).counts == {("Mail.Send", "Mail.Send"): 1}


def test_what_is_mixed_up_most_stands_first_and_so_does_what_was_not_called() -> None:
    confusion = confusion_of([(["a"], ["a", "z"]), (["b"], ["c"]), (["b"], ["c"]), (["a"], [])])
    assert confusion.rows == ["b", "a", None]
    assert confusion.columns == [None, "c", "a", "z"]
    assert confusion.confused_pairs == [(("b", "c"), 2), (("a", None), 1)]


def test_tools_that_are_always_called_as_expected_can_be_left_out() -> None:
    confusion = confusion_of([(["a", "b"], ["a", "b"]), (["b"], ["c"])]).without_correct_tools
    assert confusion.counts == {("b", "b"): 1, ("b", "c"): 1}


def test_nothing_makes_an_empty_table() -> None:
    confusion = confusion_of([])
    assert (confusion.rows, confusion.columns, confusion.confused_pairs) == ([], [], [])
