"""The list of models to choose from, as data: those that settings and suites name, then each endpoint that can be
reached with the models that it lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from workbench.dataclasses import dataclass
from workbench.evaluation.model_list import KnownEndpoint, names_to_run
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role
from workbench.show.visible import model_label, one_line
from workbench.suite.variants import NO_VARIANTS, SEPARATOR, Variants
from workbench.tui.models.choices import ModelChoices

MAX_UNFOLDED = 12
"""The models of a local server are shown at once up to this number."""


@dataclass(frozen=True)
class Row:
    """A row of the list. With `name`, a model that can be checked. With an endpoint and `model`, a model that the
    endpoint lists, without `model` the endpoint itself. With `variant`, a variant of suites that can be checked."""

    label: str
    detail: str = ""
    short: str = ""
    name: str | None = None
    endpoint: KnownEndpoint | None = None
    model: str = ""
    variant: str = ""


class ModelsState:
    """What can be chosen, and what is."""

    def __init__(
        self,
        choices: ModelChoices,
        checked: Sequence[str],
        endpoints: Sequence[KnownEndpoint],
        own: Sequence[str] = (),
        variants: Mapping[str, str] = MappingProxyType({}),
        run_as: Variants = NO_VARIANTS,
    ) -> None:
        """`variants` are those of the suites, each with a few words about it; `run_as` are those that are run."""
        self._variants = variants
        self._run_as = run_as
        self._checked_variants = set(variants) if run_as.all_of_them else set(run_as.names)
        self._variants_before = frozenset(self._checked_variants)
        self.choices = choices
        self._before = frozenset(checked)
        self._own = tuple(own)
        """The models that the suite itself names."""
        self._checked = set(checked)
        self.endpoints = list(endpoints)
        self._unfolded: set[str] = set()
        self._asked: set[str] = set()
        self.filter = ""
        self.rows: list[Row] = []
        self._build()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The checked models, in the order of the list, also those that are folded away."""
        listed = (name for endpoint in self.endpoints for _, name in names_to_run(endpoint) if name is not None)
        names = dict.fromkeys((*(choice.name for choice in self.choices.choices), *listed))
        return tuple(name for name in names if name in self._checked)

    @property
    def chosen_variants(self) -> Variants:
        """The checked variants, which are run beside the suites as written; what it was if nothing was changed."""
        if self._checked_variants == self._variants_before:
            return self._run_as
        return Variants(frozenset(self._checked_variants))

    @property
    def local(self) -> list[KnownEndpoint]:
        """The endpoints on this machine."""
        return [endpoint for endpoint in self.endpoints if endpoint.preset.is_local]

    @property
    def absent(self) -> Iterator[tuple[Role, str]]:
        """Which endpoints cannot be reached, a sentence for each reason. Those that refused to answer come first."""
        for each in self.endpoints:
            if each.problem:
                yield "error", f"{each.preset.title}: {each.problem}"
        keyless = [each.preset.title for each in self.endpoints if not each.key_is_found]
        if keyless:
            yield "muted", f"No key is found for {', '.join(keyless)}."
        asking = [each.preset.title for each in self.local if each.preset.name in self._asked]
        if asking:
            yield "muted", f"Asking {', '.join(asking)} {GLYPHS.running}"
        silent = [
            f"{each.preset.title} ({each.preset.place})"
            for each in self.local
            if not (each.is_reachable or each.problem or each.preset.name in self._asked)
        ]
        if silent:
            yield "muted", f"Nothing answers for {', '.join(silent)}."

    def is_checked(self, row: Row) -> bool:
        """Return whether the model of a row is checked."""
        return row.variant in self._checked_variants if row.variant else row.name in self._checked

    def is_in_effect(self, row: Row) -> bool:
        """Return whether runs use the model of a row at present: a checked one, or the suite's own. So for a
        variant."""
        if row.variant:
            return row.variant in self._variants_before
        return row.name in (self._before or self._own)

    @property
    def in_effect(self) -> Iterator[tuple[Role, str]]:
        """What runs use at present, and what they will."""
        if self._before:
            named = [choice.name for choice in self.choices.choices if choice.name in self._before]
            yield "text", f"In use: {_listed(named)}, checked here in place of each suite's own."
        else:
            yield (
                "text",
                f"In use: the suite's own, {_listed(self._own)}." if self._own else "In use: each suite's own.",
            )
        if self._checked == self._before:
            yield "muted", "Models that you check replace each suite's own; check none to use those."
        elif self._checked:
            yield "running", f"Enter: runs use {_listed(self.chosen)} from now on."
        else:
            yield "running", "Enter: runs use each suite's own models again."
        if self._checked_variants:
            yield "text", f"Beside each suite as written, {_named(sorted(self._checked_variants))} will run."

    def check(self, row: Row) -> None:
        """Check or uncheck the model or variant of a row."""
        if row.variant:
            self._checked_variants ^= {row.variant}
        if row.name is not None:
            self._checked ^= {row.name}

    def asks(self, endpoint: KnownEndpoint) -> None:
        """Note that an endpoint is being asked for its models."""
        self._asked.add(endpoint.preset.name)
        self._build()

    def answered(self, endpoint: KnownEndpoint) -> None:
        """Note what an endpoint answered. Its models are shown if it was asked by the user, or lists only a few."""
        name = endpoint.preset.name
        self._asked.discard(name)
        self.endpoints = [endpoint if each.preset == endpoint.preset else each for each in self.endpoints]
        if endpoint.models is not None and not (endpoint.preset.is_local and len(endpoint.models) > MAX_UNFOLDED):
            self._unfolded.add(name)
        self._build()

    def fold(self, endpoint: KnownEndpoint) -> None:
        """Show the models of an endpoint, or hide them."""
        self._unfolded ^= {endpoint.preset.name}
        self._build()

    def set_filter(self, text: str) -> None:
        """Show only models with every word of a text. Those of endpoints are then found also if they are hidden."""
        self.filter = text
        self._build()

    def added(self, choices: ModelChoices, name: str) -> int:
        """Show a model that was added, check it, and return its row."""
        self.choices = choices
        self._checked.add(name)
        self._build()
        return next((at for at, row in enumerate(self.rows) if row.name == name), 0)

    def changed(self, choices: ModelChoices) -> None:
        """Show models that were read anew."""
        self.choices = choices
        self._build()

    def _build(self) -> None:
        words = self.filter.casefold().split()

        def fits(row: Row) -> bool:
            text = f"{row.label} {row.detail}".casefold()
            return all(word in text for word in words)

        choices = [
            Row(model_label(choice.name), choice.detail, choice.short, choice.name) for choice in self.choices.choices
        ]
        named = {row.name for row in choices}
        sign = SEPARATOR.strip()
        choices += [Row(f"{sign} {one_line(name)}", about, variant=name) for name, about in self._variants.items()]
        self.rows = list(filter(fits, choices))
        for endpoint in self.endpoints:
            preset = endpoint.preset
            listed = [
                Row(one_line(model), name=name, endpoint=endpoint, model=model)
                for model, name in names_to_run(endpoint)
                if name not in named or name is None
            ]
            fitting = list(filter(fits, listed)) if words or preset.name in self._unfolded else []
            if endpoint.is_reachable and (fitting or not words):
                head = Row(preset.title, self._said(endpoint, preset.name in self._asked), endpoint=endpoint)
                self.rows += [head, *fitting]
        if not self.rows:
            self.rows.append(Row(f"no model has {one_line(self.filter)!r} in its name"))

    def _said(self, endpoint: KnownEndpoint, asked: bool) -> str:
        if asked:
            return f"asking for its models {GLYPHS.running}"
        if endpoint.problem:
            return "does not list its models"
        return endpoint.state if endpoint.models is not None else f"{endpoint.state}: Space lists its models"


def _named(variants: Sequence[str]) -> str:
    names = ", ".join(map(one_line, variants))
    return f"the {'variant' if len(variants) == 1 else 'variants'} {names}"


def _listed(models: Sequence[str]) -> str:
    return ", ".join(map(model_label, models))
