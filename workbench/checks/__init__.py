"""Importing any module of this room registers all kinds of checks, in the order in which the format lists them."""

from workbench.checks import value_kinds, text_kinds, combined_kinds, structure_kinds, element_kinds  # noqa: F401, I001  (in this order)
