"""Converts evidence to the value of a parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from zoneinfo import available_timezones

from workbench.providers.offline.clauses import Clause
from workbench.providers.offline.evidence import Evidence, Kind
from workbench.providers.offline.schemas import Parameter, Role
from workbench.providers.offline.words import STOPWORDS, operation_of, split_name, stem
from workbench.trajectory.messages import JsonValue

ACCEPTED: dict[Role, tuple[Kind, ...]] = {
    "number": ("number",),
    "moment": ("datetime", "date", "time"),
    "email": ("email", "handle", "name"),
    "url": ("url",),
    "zone": ("pair", "name"),
    "person": ("handle", "email", "name", "id"),
    "id": ("id", "number", "quoted", "pair"),
    "path": ("path", "quoted", "url", "pair"),
    "expression": ("quoted",),
    "query": ("quoted",),
    "prose": ("quoted",),
    "opaque": ("quoted", "name", "id", "number", "url", "path", "pair"),
    "other": ("quoted", "name", "id", "pair", "path", "handle", "number"),
}
"""The kinds of evidence that a role takes, the likeliest first; other roles take none."""

_DIGIT_MEANING = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:\(|=|is|:|means)\s*([a-z]+)", re.ASCII)
_MAX_CHOICES = 200
_REGIONS = frozenset(
    {"Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}
)


def value_for(parameter: Parameter, one: Evidence) -> JsonValue:
    """Returns the value of a piece of evidence in the parameter's type; None when it has none."""
    if one.kind not in ACCEPTED.get(parameter.role, ()):
        return None
    value: JsonValue = one.value
    if parameter.role == "number":
        whole = isinstance(value, float) and value.is_integer() and "number" not in parameter.types
        value = int(value) if whole and isinstance(value, float) else value
    elif parameter.role == "moment":
        value = _moment(parameter, one)
    elif parameter.role == "zone":
        value = zone_of(str(value))
    else:
        value = str(value)
    return value if value is not None and parameter.fits(value) else None


def zone_of(text: str) -> str | None:
    """Returns the IANA time zone of a name or a city: `Tokyo` → `Asia/Tokyo`."""
    return _zones().get(text.strip().lower().replace(" ", "_"))


@cache
def _zones() -> dict[str, str]:
    zones: dict[str, str] = {}
    for key in sorted(available_timezones()):
        region, _, city = key.rpartition("/")
        zones[key.lower()] = key
        if region.split("/")[0] in _REGIONS:
            zones.setdefault(city.lower(), key)
    return zones


def _moment(parameter: Parameter, one: Evidence) -> str | None:
    text = str(one.value)
    wanted = _wanted_moment(parameter)
    if one.kind == "datetime":
        return {"date": text[:10], "time": text[11:16]}.get(wanted, text)
    if one.kind == "date":
        return {"date-time": f"{text}T00:00:00", "time": None}.get(wanted, text)
    return text if wanted in ("time", "any") else None


def _wanted_moment(parameter: Parameter) -> str:
    """Returns `date`, `time`, `date-time`, or `any` when the schema does not say."""
    stated = parameter.schema.get("format")
    if stated in ("date", "time", "date-time"):
        return str(stated)
    described = parameter.description
    has_date, has_time = "yyyy" in described, "hh" in described
    if "date-time" in described or "datetime" in described or (has_date and has_time):
        return "date-time"
    return "date" if has_date else "time" if has_time else "any"


def mentioned(parameter: Parameter, clause: Clause, known: frozenset[str]) -> list[tuple[Evidence, JsonValue]]:
    """Returns the parameter's listed values (or examples) that a clause names, the longest first, with their places.
    `known` are stems of the tool itself: for an optional parameter they prove nothing, and neither do small words or
    the clause's first verb."""
    examples = parameter.schema.get("examples")
    values = parameter.choices or (tuple(examples) if isinstance(examples, list) else ())
    outside = [(one.start, one.end) for one in clause.evidence if one.kind not in ("name", "number")]
    words = [word for word in clause.words if not any(start <= word.start < end for start, end in outside)]
    stems = [word.stem for word in words]
    hits: list[tuple[int, Evidence, JsonValue]] = []
    for value in values[:_MAX_CHOICES]:
        if not isinstance(value, str):
            numbers = [one for one in clause.evidence if one.kind == "number" and one.value == value]
            hits += [(1, one, value) for one in numbers[:1] if not isinstance(value, bool)]
            continue
        if operation_of(value) in clause.operations and parameter.choices:
            hits.append((1, Evidence("name", value, 0, 0), value))
            continue
        own = [stem(word) for word in split_name(value)]
        for place in range(len(stems) - len(own) + 1 if own else 0):
            plain = place == 0 or all(word in STOPWORDS or word in known for word in own)
            if stems[place : place + len(own)] == own and (parameter.required or not plain):
                span = words[place].start, words[place + len(own) - 1].end
                hits.append((len(own), Evidence("name", value, *span), value))
                break
    ordered = sorted(hits, key=lambda hit: (-hit[0], hit[1].start))
    found_values: list[tuple[Evidence, JsonValue]] = []
    for _, one, value in ordered:
        if not overlaps(one, [(other.start, other.end) for other, _ in found_values]):
            found_values.append((one, value))
    return found_values


def number_meant(parameter: Parameter, clause: Clause) -> int | float | None:
    """Returns the number that the parameter's description assigns to a word of the clause, as in "0 (off) to 100
    (full)"."""
    meanings = {word: float(number) for number, word in _DIGIT_MEANING.findall(parameter.description)}
    spelled = [meanings[word.text.lower()] for word in clause.words if word.text.lower() in meanings]
    return None if not spelled else int(spelled[0]) if spelled[0].is_integer() else spelled[0]


def overlaps(one: Evidence, spans: Iterable[tuple[int, int]]) -> bool:
    """Returns whether a piece of evidence overlaps any of the spans."""
    return any(start < one.end and one.start < end for start, end in spans)
