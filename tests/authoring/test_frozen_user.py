"""The messages of a run as a script, and the parts of the former script that a frozen message keeps."""

from __future__ import annotations

import pytest

from workbench.authoring.frozen_user import frozen_user
from workbench.suite.render import Table
from workbench.trajectory.events import UserSaid
from workbench.trajectory.trajectory import Trajectory, UserTurn

EXPECTED = [{"tool": "get_order"}]


@pytest.mark.parametrize("name", [None, "number"])
@pytest.mark.parametrize("typed", [None, "It is B99."])
def test_a_scripted_message_keeps_its_expectations_with_and_without_an_id(name: str | None, typed: str | None) -> None:
    named = {} if name is None else {"id": name}
    waits = {**named, "say": "It is A17.", "when": {"called": ["find"]}, "ordered": EXPECTED}
    case: Table = {"user": {"messages": [{"say": "Hi."}, waits]}}
    second = UserSaid(2, typed or "It is A17.", "script", name, original="It is A17." if typed else None)
    turns = (UserTurn(1, said=UserSaid(1, "Hi.", "script")), UserTurn(2, said=second))
    frozen = frozen_user(case, Trajectory("run", user_turns=turns))
    kept = {**named, "say": typed or "It is A17.", "ordered": EXPECTED}
    assert frozen["user"] == {"messages": [{"say": "Hi."}, kept]}
