"""The parameters of a model's settings: which of them an API has, and what happens to the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.config.models import ModelSpec


def sent_params(
    spec: ModelSpec, api: str, *, lacking: Mapping[str, str] | None = None, renamed: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the parameters to send, and one sentence for each that is not sent. `lacking` are parameters of other
    APIs that this one lacks, with the replacement (or nothing); `renamed` are those that it has under a different name.
    Any other is sent as written."""
    sent: dict[str, Any] = {}
    notices: list[str] = []
    for name, value in spec.params.items():
        field = (renamed or {}).get(name, name)
        if lacking is not None and name in lacking:
            instead = f", write {lacking[name]} instead" if lacking[name] else ""
            notices.append(f"params.{name} is not sent to {spec.name}: the {api} API has no such parameter{instead}")
        elif field != name and field in spec.params:
            notices.append(f"params.{name} is not sent to {spec.name}: params.{field} says the same")
        else:
            sent[field] = value
    return sent, tuple(notices)


def whole_seed(params: Mapping[str, Any]) -> int | None:
    """Returns the seed among the parameters that are sent, if it is a whole number."""
    seed = params.get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None
