"""Invented rows in the leaderboard's form: several for each category that is graded by calls."""

from __future__ import annotations

from typing import Any, NamedTuple


class Sample(NamedTuple):
    """A row with its accepted answers. `answers` is `None` if the row expects no call or accepts any."""

    category: str
    row: dict[str, Any]
    answers: list[dict[str, Any]] | None


def _function(name: str, required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "dict", "properties": properties, "required": required}
    return {"name": name, "description": f"Does {name}.", "parameters": parameters}


def _sample(category: str, number: int, asked: str, functions: list[Any], answers: list[Any] | None) -> Sample:
    question = [[{"role": "user", "content": asked}]]
    return Sample(category, {"id": f"{category}_{number}", "question": question, "function": functions}, answers)


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
FRACTION = {"type": "float"}

_TRAIN = _function(
    "trains.find",
    ["origin", "destination"],
    origin=TEXT,
    destination=TEXT,
    day=TEXT,
    seats=WHOLE,
    first_class={"type": "boolean"},
)
_ROOM = _function("room.book", ["guests"], guests=WHOLE, price=FRACTION, wishes={"type": "array", "items": TEXT})
_PAINT = _function(
    "paint",
    ["wall"],
    wall={
        "type": "dict",
        "properties": {"colour": TEXT, "coats": WHOLE, "finish": TEXT},
        "required": ["colour"],
    },
)
_ORDER = _function(
    "order",
    ["items"],
    items={"type": "array", "items": {"type": "dict", "properties": {"dish": TEXT, "count": WHOLE}}},
    note=TEXT,
)
_MEASURE = _function(
    "measure",
    ["points"],
    points={"type": "array", "items": FRACTION},
    corner={"type": "tuple", "items": WHOLE},
    unit={"type": "any"},
)

SAMPLES: tuple[Sample, ...] = (
    _sample("simple", 0, "A train to Lyon on May 1st?", [_TRAIN], [{"trains.find": {
        "origin": ["Paris", "Paris, France"], "destination": ["Lyon"], "day": ["May 1, 2026", "2026-05-01", ""],
        "seats": ["", 1], "first_class": [False, ""]}}]),
    _sample("simple", 1, "A room for two.", [_ROOM], [{"room.book": {
        "guests": [2], "price": [80, 90.5], "wishes": [["sea view", "late check-out"], ["Sea-View"], ""]}}]),
    _sample("simple", 2, "Paint it sky blue.", [_PAINT], [{"paint": {
        "wall": [{"colour": ["sky blue", "light blue"], "coats": [2, ""], "finish": ["", "matt"]}]}}]),
    _sample("simple", 3, "Two soups and a tea.", [_ORDER], [{"order": {
        "items": [[{"dish": ["soup", "soup of the day"], "count": [2]}, {"dish": ["tea"], "count": [1, ""]}]],
        "note": [""]}}]),
    _sample("simple", 4, "How long is it?", [_MEASURE], [{"measure": {
        "points": [[1.5, 2.5, 0.25]], "corner": [[1, 2], ""], "unit": ["metre", "m", ""]}}]),
    _sample("simple", 5, "The usual room.", [_ROOM], [{"room.book": {"guests": ["usual_guests"], "price": [""]}}]),
    _sample("multiple", 0, "Two guests, please.", [_TRAIN, _ROOM, _PAINT], [{"room.book": {
        "guests": [2], "price": ["", 75.5], "wishes": [""]}}]),
    _sample("multiple", 1, "A note for the kitchen.", [_ORDER, _ROOM], [{"order": {
        "items": [[{"dish": ["crème brûlée", "creme brulee"], "count": [1]}]],
        "note": ["no sugar", "without sugar"]}}]),
    _sample("parallel", 0, "Rooms for two and for four.", [_ROOM], [
        {"room.book": {"guests": [2], "price": [""], "wishes": [["quiet"], ""]}},
        {"room.book": {"guests": [4], "price": ["", 120.5], "wishes": [""]}}]),
    _sample("parallel", 1, "There and back.", [_TRAIN], [
        {"trains.find": {"origin": ["Oslo"], "destination": ["Bergen"], "seats": [1, ""]}},
        {"trains.find": {"origin": ["Bergen"], "destination": ["Oslo"], "seats": [1, ""]}}]),
    _sample("parallel_multiple", 0, "A train and a room.", [_TRAIN, _ROOM, _ORDER], [
        {"trains.find": {"origin": ["Bonn"], "destination": ["Köln", "Cologne"]}},
        {"room.book": {"guests": [1], "price": [60.5, ""]}}]),
    _sample("parallel_multiple", 1, "Paint, and measure twice.", [_PAINT, _MEASURE], [
        {"measure": {"points": [[0.5, 1.5]], "unit": ["cm"]}},
        {"paint": {"wall": [{"colour": ["white"]}]}},
        {"measure": {"points": [[2.5]], "unit": ["", "cm"]}}]),
    _sample("irrelevance", 0, "What is love?", [_TRAIN], None),
    _sample("irrelevance", 1, "Sing.", [_ROOM, _ORDER], None),
    _sample("relevance", 0, "Get me to Rome.", [_TRAIN, _ROOM], None),
)  # fmt: skip
