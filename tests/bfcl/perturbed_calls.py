"""Correct calls for a row, and nearly correct ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.bfcl.checker import Made
from tests.bfcl.rows import Sample

_OTHERS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["", " ", "Lyon", "2", "true", "usual_guests", 0, 1, 2, 4, 60.5, 90.5, True, False, [], {}, None]),
    st.sampled_from([["quiet"], ["QUIET"], [1.5, 2.5, 0.25], [1, 2], {"colour": "white"}, [{"dish": "tea"}]]),
    st.text(max_size=3),
    st.integers(-2, 130),
)


def calls_of(sample: Sample) -> list[Made]:
    """Return the calls with the first accepted value of each parameter."""
    made: list[Made] = []
    for answer in sample.answers or ():
        for name, values in answer.items():
            firsts = {argument: accepted[0] for argument, accepted in values.items() if accepted[0] != ""}
            made.append((name.replace(".", "_"), {key: _first(value) for key, value in firsts.items()}))
    return made


def _first(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: accepted[0] for name, accepted in value.items() if accepted[0] != ""}
    if isinstance(value, list):
        return [_first(each) for each in value]
    return value


@st.composite
def perturbed(draw: st.DrawFn, sample: Sample) -> list[Made]:
    """Calls with accepted values, changed in up to two ways."""
    made: list[Made] = [
        _drawn_call(draw, name, values) for each in sample.answers or () for name, values in each.items()
    ]
    names = [function["name"].replace(".", "_") for function in sample.row["function"]]
    for _ in range(draw(st.integers(0, 2))):
        how = draw(st.sampled_from(["value", "text", "drop", "add", "tool", "again", "less", "order", "more"]))
        at = draw(st.integers(0, len(made) - 1)) if made else -1
        if how == "more" or at < 0:
            made.append((draw(st.sampled_from(names)), {}))
        elif how == "again":
            made.append(made[at])
        elif how == "less":
            del made[at]
        elif how == "order":
            made = draw(st.permutations(made))
        else:
            made[at] = _changed(draw, how, made[at], names)
    return made


def _drawn_call(draw: st.DrawFn, name: str, values: dict[str, list[Any]]) -> Made:
    arguments = {}
    for argument, accepted in values.items():
        value = draw(st.sampled_from(accepted))
        if value != "" or draw(st.integers(0, 9)) == 0:
            arguments[argument] = _drawn(draw, value)
    return name.replace(".", "_"), arguments


def _drawn(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        chosen = {name: draw(st.sampled_from(accepted)) for name, accepted in value.items()}
        return {name: each for name, each in chosen.items() if each != "" or draw(st.booleans())}
    return [_drawn(draw, each) for each in value] if isinstance(value, list) else value


def _changed(draw: st.DrawFn, how: str, made: Made, names: list[str]) -> Made:
    tool, arguments = made[0], dict(made[1])
    if how == "tool":
        return draw(st.sampled_from([*names, "other", tool.upper()])), arguments
    if how == "add":
        arguments[draw(st.sampled_from(["unit", "note", "price", "wishes", "seats", "unknown"]))] = draw(_OTHERS)
        return tool, arguments
    if not arguments:
        return made
    name = draw(st.sampled_from(sorted(arguments)))
    if how == "drop":
        del arguments[name]
    elif how == "value":
        arguments[name] = draw(_OTHERS)
    else:
        arguments[name] = _said_otherwise(draw, arguments[name])
    return tool, arguments


def _said_otherwise(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, str):
        changes = [str.upper, lambda text: f" {text}-", lambda text: text.replace(" ", ""), lambda text: text + "!"]
        return draw(st.sampled_from(changes))(value)
    if isinstance(value, list):
        return [_said_otherwise(draw, each) for each in value]
    if isinstance(value, dict):
        return {name: _said_otherwise(draw, each) for name, each in value.items()}
    return value
