"""The one way in which a check fails that is no verdict on the value."""

from __future__ import annotations


class CheckError(Exception):
    """A check could not be evaluated: its Python function raised, or what it needs is not there.

    That says nothing about the model, so it ends a run with status `error`. The message names the check.
    """


class FunctionRaisedError(CheckError):
    """The function of a `python` check raised, or answered neither True nor False."""
