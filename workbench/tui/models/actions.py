"""The action that chooses models and adds new ones."""

from __future__ import annotations

from workbench.tui.kit.actions import Action, Feature

FEATURE = Feature("models", (Action("models", "Choose models, or add one", ("m",), label="models"),), group="Runs")
