"""The completions at the cursor in the TOML of a case."""

from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.trajectory.events import ToolDefinition
from workbench.tui.case.toml.completions import offer_at

LIGHTS = ToolDefinition(
    "set_lights",
    "Sets the lights.",
    {
        "type": "object",
        "properties": {
            "room": {"type": "string", "enum": ["bath", "living room"]},
            "brightness": {"type": "integer"},
            "place": {"type": "object", "properties": {"floor": {"type": "integer"}, "side": {"enum": ["left"]}}},
        },
        "required": ["room"],
    },
)
TV = ToolDefinition("set_tv", "Turns the TV on.", {"type": "object", "properties": {"power": {"type": "boolean"}}})


def offered(text: str) -> tuple[str, list[str]] | None:
    """Return the completed word at `|` in a text, and the completions."""
    before = text[: text.index("|")]
    lines = text.replace("|", "").split("\n")
    line, column = before.count("\n"), len(before.rpartition("\n")[2])
    offer = offer_at(lines, (line, column), (LIGHTS, TV))
    return None if offer is None else (lines[line][offer.start : column], [one.text for one in offer.found])


CALL = '[[cases.ordered]]\ntool = "set_lights"\n[cases.ordered.args]\n'


@each_row(
    ("text", "typed", "first"),
    [
        ('[[cases.ordered]]\ntool = "set_|', "set_", 'set_lights"'),
        ('[[cases.ordered]]\ntool = "set_t|"', "set_t", "set_tv"),
        ('any_order = [{ tool = "tv|', "tv", 'set_tv"'),
        (CALL + "|", "", "room = "),
        (CALL + "br|", "br", "brightness = "),
        (CALL + 'room = "li|', '"li', '"living room"'),
        (CALL + "brightness = { ra|", "ra", "range = "),
        ('[[cases.ordered]]\ntool = "set_tv"\nargs = { |', "", "power = "),
        ('[[cases.ordered]]\nany_order = [{ tool = "set_tv", args = { power = t|', "t", "true"),
        ('[[cases.ordered]]\ntool = "set_lights"\nargs = { room = "bath", b|', "b", "brightness = "),
        ("[[cases]]\nus|", "us", "user = "),
        ("[[cases]]\n[cases.limits]\nmax_r|", "max_r", "max_rounds = "),
        ("format = 1\nna|", "na", "name = "),
        ('[[cases.steps]]\nto|\nuser = "x"', "to", "tool = "),
        ("[[cases.ordered]]\nresult = { has_f|", "has_f", "has_fields = "),
        ("[[cases.ordered]]\nresult = { has_fields = { status = { con|", "con", "contains = "),
        ("[[cases.disallowed]]\nbefore = { to|", "to", "tool = "),
        ('[[cases.disallowed]]\nbefore = { tool = "set_lights", args = { ro|', "ro", "room = "),
        ('[[cases.ordered]]\nany_of = [\n  { tool = "set_tv" },\n  { to|', "to", "tool = "),
        ('[[cases.ordered]]\nany_of = [{ tool = "set_lights", args = { room = "ba|', '"ba', '"bath"'),
        ("[[cases]]\nat_most = { ro|", "ro", "rounds = "),
        ('[[cases]]\nclock = "2026-06-09 Europe/Berl|', "Europe/Berl", 'Europe/Berlin"'),
        ('[[cases]]\nextra_calls = ["set_lights", "tv|', "tv", 'set_tv"'),
        ('[[cases.setup]]\ntool = "set_tv"\nargs = { po|', "po", "power = "),
        ('[[cases.final.state]]\ntool = "set_tv"\n[cases.final.state.args]\npo|', "po", "power = "),
        ("[cases.final]\nchanges = [{ to|", "to", "tool = "),
        (CALL + "place = { has_fields = { floor = { ra|", "ra", "range = "),
        (CALL + "place = { has_fields = { fl|", "fl", "floor = "),
        (CALL + 'place = { has_fields = { side = "le|', '"le', '"left"'),
        (CALL + "[cases.ordered.args.place.has_fields]\nsi|", "si", "side = "),
        (CALL + "brightness = { near = 3, tol|", "tol", "tolerance = "),
    ],
)
def test_what_fits_is_offered_first(text: str, typed: str, first: str) -> None:
    found = offered(text)
    assert found is not None
    assert (found[0], found[1][0]) == (typed, first)


def test_what_the_table_has_already_is_not_offered_again() -> None:
    found = offered(CALL + 'room = "bath"\n|\n\n[[cases.ordered]]\nbrightness = 1')
    assert found == ("", ["brightness = ", "place = "])


@pytest.mark.parametrize("text", ['user = "hello |', "# tool|", "[[cases]]\n[unknown.table]\n|", CALL + "colour = |"])
def test_where_nothing_is_known_nothing_is_offered(text: str) -> None:
    assert offered(text) is None
