"""The Pareto front."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.side_by_side import ParetoPoint, pareto_front

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12).map(
    lambda pairs: [ParetoPoint(str(name), takes, score / 6) for name, (takes, score) in enumerate(pairs)]
)


@given(POINTS)
def test_none_on_the_front_is_beaten_and_every_other_is(points: list[ParetoPoint]) -> None:
    found = pareto_front(points)
    assert {each.name for each in found} == {
        each.name for each in points if not any(other.beats(each) for other in points)
    }
    assert [each.amount for each in found] == sorted(each.amount for each in found)
