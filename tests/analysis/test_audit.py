"""The audit: cases that check too little, expectations that cannot be met, and tools that no case covers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import checks
from workbench.analysis.audit.audit import audit_suite
from workbench.analysis.audit.contradictions import AuditFinding
from workbench.checks.check import Check, NeverHoldsError, UnknownSampleError, evaluate, has_kind, with_parts
from workbench.checks.text_kinds import DateTime, EqualsText
from workbench.checks.value_kinds import Equals, Near, OneOf
from workbench.grading.run import GRADERS_BY_NAME
from workbench.suite.model import Suite
from workbench.suite.problems import place_text
from workbench.suite.settings import settings_of
from workbench.tools.listings import Listing
from workbench.trajectory.events import ToolDefinition

SEARCH = {
    "name": "search",
    "parameters": {
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string"},
            "kind": {"enum": ["book", "film"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10},
            "author": {"type": "string", "maxLength": 4},
        },
    },
}
DELETE = {"name": "delete", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}


def suite_of(*cases: dict[str, Any], **more: Any) -> Suite:
    tables = [{"name": f"case {number}", "user": "Look for Dune", **case} for number, case in enumerate(cases)]
    return Suite.model_validate({"format": 1, "name": "s", "tools": [SEARCH, DELETE], "cases": tables, **more})


def found(*cases: dict[str, Any], **more: Any) -> list[AuditFinding]:
    """All findings but those about wrong runs that pass, and about checks that refuse too little."""
    findings = audit_suite(suite_of(*cases, **more), {}).findings
    return [each for each in findings if each.kind not in ("unnoticed", "cannot fail")]


def unnoticed(*cases: dict[str, Any], **more: Any) -> list[str]:
    """Return the audit's findings on wrong runs that pass: severity, place and message."""
    findings = audit_suite(suite_of(*cases, **more), {}).findings
    return [f"{each.weight} {place_text(each.place)} {each.message}" for each in findings if each.kind == "unnoticed"]


def expecting(args: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    call = {"tool": "search"} if args is None else {"tool": "search", "args": args}
    return {"ordered": [{**call, **more}]}


def test_a_case_that_asks_for_something_that_can_be_done_is_left_alone() -> None:
    assert found(expecting({"query": {"contains": "dune"}, "kind": "book", "limit": {"range": [1, 5]}})) == []


class TestCarelessAgents:
    def test_a_case_of_prohibitions_alone_is_passed_by_silence(self) -> None:
        [finding] = found({"disallowed": [{"tool": "delete"}]})
        assert (finding.kind, finding.weight, finding.case) == ("weak case", "warning", "case-0")
        assert "neither calls nor says anything" in finding.message

    def test_a_keyword_of_the_request_is_passed_by_repeating_it(self) -> None:
        [finding] = found({"response_contains": ["dune"]})
        assert finding.kind == "weak case" and "repeats the request" in finding.message

    def test_a_case_that_expects_any_tools_in_any_manner_is_passed_by_calling_everything(self) -> None:
        both = [{"tool": "delete"}, {"tool": "search"}]
        [finding] = found({"unordered": both}, grading={"by": "critics"})
        assert finding.kind == "weak case" and "calls every tool" in finding.message

    def test_a_case_that_expects_no_call_is_only_a_note(self) -> None:
        [finding] = found({"expect_no_calls": True})
        assert (finding.kind, finding.weight) == ("weak case", "note")

    @pytest.mark.slow
    def test_a_pattern_that_takes_too_long_leaves_open_what_it_was_asked_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("workbench.checks.patterns.SEARCH_LIMIT_S", 0.03)
        request = "a" * 60 + "!"
        case = {"user": request, "expect_no_calls": True, "response": {"pattern": "^(a|aa)+$"}}
        tool = {"name": "f", "parameters": {"properties": {"x": {"pattern": "^(a|aa)+$"}, "y": {"enum": [request]}}}}
        called = {"ordered": [{"tool": "f", "args": {"x": request, "y": {"pattern": "^(a|aa)+$"}}}]}
        mock = {"tool": "f", "when": {"x": {"pattern": "^(a|aa)+$"}}, "result": 1}
        findings = found(case, called, tools=[tool], mocks=[mock])
        assert {finding.kind for finding in findings} == {"not looked at"}

    def test_a_skipped_case_need_not_find_anything_out(self) -> None:
        assert found({"disallowed": [{"tool": "delete"}], "skip": "later"}) == []

    def test_an_answer_check_makes_the_difference(self) -> None:
        assert found({"expect_no_calls": True, "response_contains": ["spice"]}) == []

    def test_a_judge_is_taken_to_refuse_them(self) -> None:
        assert found({"expect_no_calls": True, "response": {"judged": "says what Dune is"}}) == []


def chain(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    first, *rest = steps
    return {"user": None, "steps": [{"user": "Look for Dune", **first}, *rest], **more}


DUNE: dict[str, Any] = {"tool": "search", "args": {"query": "dune"}}


class TestChains:
    @pytest.mark.parametrize("by", list(GRADERS_BY_NAME))
    def test_a_chain_that_can_be_done_is_left_alone_however_long_it_is(self, by: str) -> None:
        steps = [DUNE] * 8 + [{"tool": "delete", "args": {"id": "1"}}, {}]
        done = chain(*steps, response_contains=["spice"], stop_on_failure=True)
        assert found(done, grading={"by": by, "fail_threshold": 1.0}) == []

    @pytest.mark.parametrize("by", ["decision", "trajectory", "dimensions"])
    def test_a_chain_that_asks_for_any_call_is_passed_by_calling_everything_every_time(self, by: str) -> None:
        [finding] = found(chain({"tool": "search"}, {"tool": "search"}), grading={"by": by})
        assert finding.kind == "weak case" and "calls every tool" in finding.message

    @pytest.mark.parametrize("by", list(GRADERS_BY_NAME))
    def test_a_chain_that_expects_no_call_is_only_a_note(self, by: str) -> None:
        [finding] = found(chain({}, {}), grading={"by": by})
        assert (finding.kind, finding.weight) == ("weak case", "note")

    def test_an_argument_of_a_step_that_is_expected_and_forbidden(self) -> None:
        [finding] = found(chain(DUNE, {**DUNE, "forbidden_args": ["query"]}))
        assert finding.kind == "out of reach"


class TestOutOfReach:
    def test_an_expected_call_that_is_forbidden_too(self) -> None:
        case = expecting({"query": "dune"}) | {"disallowed": [{"tool": "search", "args": {"query": {"prefix": "du"}}}]}
        [finding] = found(case)
        assert finding.kind == "out of reach" and "this call must not be made" in finding.message

    def test_an_argument_that_is_expected_and_forbidden(self) -> None:
        kinds = {finding.kind for finding in found(expecting({"query": "dune"}, forbidden_args=["query"]))}
        assert kinds == {"out of reach"}

    def test_an_answer_after_the_only_round(self) -> None:
        [finding] = found(expecting({"query": "dune"}) | {"response": "here", "limits": {"max_rounds": 1}})
        assert finding.kind == "out of reach"

    def test_a_gate_above_what_exact_runs_score(self) -> None:
        nothing_counts = expecting({"query": {"equals": "dune", "weight": 0}}) | {
            "grading": {"critics": {"tool_selection_weight": 0}, "fail_threshold": 0, "warn_threshold": 0}
        }
        places = [finding.place for finding in found(nothing_counts, gate={"min_score": 0.5})]
        assert ("gate", "min_score") in places

    @pytest.mark.parametrize(
        "demanded", [{"of": "accuracy.extra", "at_least": {"mean": 0}}, {"of": "trajectory", "above": {"minimum": 1}}]
    )
    def test_a_gate_of_an_aggregate_that_exact_runs_miss(self, demanded: dict[str, Any]) -> None:
        [finding] = found(expecting({"query": "dune"}), aggregates=[{"name": "a", **demanded}])
        assert (finding.kind, finding.place[0]) == ("out of reach", "aggregates")

    def test_a_gate_of_an_aggregate_that_exact_runs_meet(self) -> None:
        met = {"name": "a", "of": "trajectory.all_pass", "above": {"mean": 0.9}}
        assert found(expecting({"query": "dune"}), aggregates=[met]) == []

    def test_checks_that_need_a_judge_or_a_function_are_taken_to_hold(self) -> None:
        assert found(expecting({"query": {"judged": "is about Dune"}, "kind": {"pattern": "^b"}})) == []


class TestExpectations:
    def kinds(self, args: dict[str, Any]) -> set[str]:
        return {finding.kind for finding in found(expecting({"query": "dune", **args}))}

    def test_a_tool_that_is_not_there(self) -> None:
        [finding] = found({"ordered": [{"tool": "serch", "args": {"query": "dune"}}]})
        assert (finding.kind, finding.hint) == ("unknown tool", "did you mean `search`?")
        assert place_text(finding.place) == "cases[0].ordered[0].tool"

    def test_a_tool_that_may_be_a_server_s_that_nobody_listed(self) -> None:
        server = {"name": "books", "command": ["books"]}
        findings = found({"ordered": [{"tool": "serch", "args": {"query": "dune"}}]}, servers=[server])
        assert [finding.kind for finding in findings] == ["not looked at"]

    def test_a_tool_that_a_server_listed(self) -> None:
        suite = suite_of({"ordered": [{"tool": "lend", "args": {"id": 5}}]}, servers=[{"name": "b", "command": ["b"]}])
        lend = ToolDefinition("lend", parameters={"properties": {"id": {"type": "string"}}})
        audit = audit_suite(suite, {"b": Listing((lend,), datetime(2026, 1, 1, tzinfo=UTC))})
        assert [finding.kind for finding in audit.findings] == ["refused value"]

    def test_an_argument_that_the_tool_does_not_have(self) -> None:
        assert self.kinds({"querry": "dune"}) == {"unknown argument"}

    @pytest.mark.parametrize("value", ["song", {"one_of": ["song", "book"]}])
    def test_a_value_that_the_schema_refuses(self, value: Any) -> None:
        assert self.kinds({"kind": value}) == {"refused value"}

    @pytest.mark.parametrize(
        "check",
        [
            {"kind": {"contains": "song"}},
            {"limit": {"contains": "1"}},
            {"limit": {"range": [11, 20]}},
            {"limit": {"range": [1.2, 1.8]}},
            {"query": {"range": [1, 2]}},
            {"limit": {"near": 50, "tolerance": 10}},
            {"limit": {"near": 500, "value_range": [400, 600]}},
            {"author": {"prefix": "Frank"}},
        ],
    )
    def test_a_check_that_no_allowed_value_meets(self, check: dict[str, Any]) -> None:
        assert self.kinds(check) == {"never holds"}

    def test_no_arguments_of_a_tool_that_needs_some(self) -> None:
        assert {finding.kind for finding in found(expecting({}))} == {"refused value"}

    def test_a_tool_whose_parameters_are_not_listed_may_have_any(self) -> None:
        tool = {"name": "open", "parameters": {"type": "object"}}
        assert found({"ordered": [{"tool": "open", "args": {"x": 1}}]}, tools=[tool, SEARCH]) == []

    def test_a_refusal_names_values_as_json_has_them(self) -> None:
        [finding] = found(expecting({"query": True}))
        assert finding.message.endswith("true is not of type 'string'")

    def test_a_reference_in_a_schema_is_followed(self) -> None:
        tool = {
            "name": "paint",
            "parameters": {
                "$defs": {"colour": {"enum": ["red"]}},
                "type": "object",
                "properties": {"colour": {"$ref": "#/$defs/colour"}},
            },
        }
        findings = found({"ordered": [{"tool": "paint", "args": {"colour": "blue"}}]}, tools=[tool])
        assert [finding.kind for finding in findings] == ["refused value"]

    def test_a_broken_schema_refuses_nothing(self) -> None:
        tool = {"name": "odd", "parameters": {"type": "object", "properties": {"a": {"type": "nothing"}}}}
        assert found({"ordered": [{"tool": "odd", "args": {"a": 1}}]}, tools=[tool]) == []


PAY = {
    "name": "pay",
    "parameters": {
        "type": "object",
        "required": ["to", "amount"],
        "properties": {
            "to": {"type": "string"},
            "amount": {"type": "number", "minimum": 0},
            "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
            "urgent": {"type": "boolean"},
        },
    },
}
TO_MARY = {"to": {"equals": "Mary", "weight": 0.1}, "amount": {"equals": 5, "weight": 1}}


class TestUnnoticed:
    """Wrong runs that pass: the exact agent with one change."""

    def of(self, case: dict[str, Any], **more: Any) -> list[str]:
        return unnoticed(case, tools=[PAY, DELETE], **more)

    def pay(self, args: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"ordered": [{"tool": "pay", "args": args}], **more}

    def test_an_argument_of_little_weight_may_be_wrong_or_missing(self) -> None:
        findings = self.of(self.pay({**TO_MARY, "currency": {"equals": "USD", "weight": 0.1}}))
        assert findings == [
            'warning cases[0].ordered[0] passes with "currency" left out; with "to", "currency" wrong',
            'note cases[0].ordered[0] passes with "urgent" added',
        ]

    def test_an_argument_in_a_call_among_many_may_be_wrong(self) -> None:
        calls = [{"tool": "pay", "args": {"to": name, "amount": 5}} for name in "abcdefgh"]
        for by in ("decision", "accuracy"):
            warnings = [each for each in self.of({"ordered": calls}, grading={"by": by}) if each.startswith("warning")]
            assert any("wrong" in each for each in warnings), by

    def test_a_grader_that_does_not_look_at_order_passes_swapped_calls(self) -> None:
        one, two = ({"tool": "delete", "args": {"id": number}} for number in "12")
        expected = 'warning cases[0].ordered passes with the calls of "delete" and "delete" swapped'
        assert expected in self.of({"ordered": [one, two]})
        same = {"ordered": [one, one]}
        assert not any("swapped" in each for each in self.of(same))
        group = {"ordered": [{"any_order": [{"tool": "pay", "args": TO_MARY}]}, two]}
        assert any('"pay" and "delete" swapped' in each for each in self.of(group))
        assert not any("swapped" in each for each in self.of(group, grading={"by": "trajectory"}))

    def test_a_further_argument_is_a_note_and_a_further_call_that_does_harm_a_warning(self) -> None:
        case = self.pay({"to": "Mary", "amount": 5})
        assert self.of(case, grading={"by": "trajectory"}) == [
            'warning cases[0] passes with a call of "delete" added; with the call of "pay" twice',
            'note cases[0].ordered[0] passes with "urgent" added',
        ]
        assert self.of({**case, "extra_calls": "forbid"}, grading={"by": "trajectory"}) == [
            'note cases[0].ordered[0] passes with "urgent" added'
        ]

    def test_examples_are_those_that_do_harm(self) -> None:
        lights = {"name": "set_lights", "parameters": {"properties": {"level": {"type": "integer"}}}}
        transfer = {
            "name": "transfer",
            "parameters": {
                "properties": {"currency": {"type": "string"}, "dry_run": {"type": "boolean"}, "to": {"type": "string"}}
            },
        }
        calls = [{"tool": "transfer", "args": {"to": "Mary"}}, {"tool": "set_lights", "args": {"level": 7}}]
        for tools in ([lights, transfer], [transfer, lights]):
            found = unnoticed({"unordered": calls}, tools=tools, grading={"by": "trajectory"})
            assert any(each.startswith("warning") and 'the call of "transfer" twice' in each for each in found)
            assert any(each.startswith("warning") and '"dry_run" added' in each for each in found)
        [harmless] = unnoticed({"ordered": [calls[1]]}, tools=[lights, SEARCH], grading={"by": "trajectory"})
        assert harmless == 'note cases[0] passes with a call of "search" added'
        named = {"ordered": [calls[1]], "extra_calls": ["search"]}
        assert unnoticed(named, tools=[lights, SEARCH], grading={"by": "trajectory"}) == [], "the case frees it by name"

    def test_what_an_argument_may_be_instead_fits_its_schema(self) -> None:
        """Every check below refuses some value that the schema allows, and weighs next to nothing."""
        checks: dict[str, dict[str, Any]] = {
            "to": {"similar": "Mary", "threshold": 0.9},
            "amount": {"near": 5, "tolerance": 1},
            "currency": {"one_of": ["USD"]},
            "urgent": {"equals": True},
        }
        for name, check in checks.items():
            args = {"to": {"present": True}, "amount": {"present": True}, name: {**check, "weight": 0.01}}
            assert any(f'"{name}" wrong' in each for each in self.of(self.pay(args))), name

    def test_what_is_no_fault_is_not_tried(self) -> None:
        """Leaving out an optional argument or the schema's default, and values that judges and functions decide on."""
        tiny = {"weight": 0.01}
        args: dict[str, Any] = {
            "to": {"judged": "is a name", **tiny},
            "amount": {"python": "checks:positive", **tiny},
            "currency": {"equals": "EUR", **tiny},
            "urgent": {"equals": True, "optional": True, **tiny},
        }
        case = {"ordered": [{"tool": "pay", "args": args}, {"tool": "delete", "args": {"id": "1"}}]}
        said = " ".join(self.of(case, grading={"critics": {"tool_selection_weight": 10}}))
        for fault in ('"currency" left out', '"urgent" left out', '"to" wrong', '"amount" wrong'):
            assert fault not in said

    def test_steps_of_a_chain_are_changed_one_by_one(self) -> None:
        step = {"tool": "pay", "args": TO_MARY}
        warnings = [each for each in self.of(chain(step, {}, step)) if each.startswith("warning")]
        assert [each.split()[1] for each in warnings] == ["cases[0].steps[0]", "cases[0].steps[2]"]

    def test_a_case_with_another_warning_is_left_until_that_is_mended(self) -> None:
        assert self.of(self.pay({**TO_MARY, "urgnt": True})) == []

    @pytest.mark.slow
    def test_the_work_is_bounded(self) -> None:
        many = {"unordered": [{"tool": "pay", "args": TO_MARY}] * 120}
        kinds = {each.kind for each in audit_suite(suite_of(many, tools=[PAY]), {}).findings}
        assert "not looked at" in kinds


class TestMocks:
    def places(self, *mocks: dict[str, Any]) -> list[str]:
        case = expecting({"query": "dune"})
        return [f"{finding.weight} {place_text(finding.place)}" for finding in found(case, mocks=list(mocks))]

    def test_one_behind_a_mock_that_answers_everything(self) -> None:
        assert self.places({"tool": "search", "result": 1}, {"tool": "search", "result": 2}) == ["warning mocks[1]"]

    def test_one_for_an_argument_that_the_tool_does_not_have(self) -> None:
        assert "warning mocks[0].when.qery" in self.places({"tool": "search", "when": {"qery": "a"}, "result": 1})

    def test_one_that_only_unexpected_calls_meet(self) -> None:
        assert self.places({"tool": "search", "when": {"query": "ubik"}, "result": 1}) == ["note mocks[0].when"]

    def test_one_that_an_expected_call_meets(self) -> None:
        assert self.places({"tool": "search", "when": {"query": {"prefix": "d"}}, "result": 1}) == []

    def test_those_of_a_case_are_looked_at_for_that_case(self) -> None:
        case = expecting({"query": "dune"}) | {"mocks": [{"tool": "search", "when": {"query": "x"}, "result": 1}]}
        assert [place_text(finding.place) for finding in found(case)] == ["cases[0].mocks[0].when"]


class TestCoverage:
    def test_it_names_tools_parameters_and_values_that_no_case_speaks_of(self) -> None:
        coverage = audit_suite(suite_of(expecting({"query": "dune", "kind": "book"})), {}).coverage
        assert (coverage.tools.covered, coverage.tools.missing) == (1, ("delete",))
        assert coverage.parameters.missing == ("search.limit", "search.author")
        assert coverage.values.missing == ('search.kind = "film"',)

    def test_a_skipped_case_covers_nothing(self) -> None:
        coverage = audit_suite(suite_of(expecting({"query": "dune"}) | {"skip": "later"}), {}).coverage
        assert coverage.tools.covered == 0

    def test_a_prohibition_covers_its_tool(self) -> None:
        coverage = audit_suite(suite_of({"disallowed": [{"tool": "delete"}]}), {}).coverage
        assert coverage.tools.missing == ("search",)


def test_a_case_has_its_own_tools_beside_those_of_the_suite() -> None:
    own = {"name": "search", "parameters": {"type": "object", "properties": {"words": {"type": "integer"}}}}
    case = {"tools": [own, {"name": "own"}], "unordered": [{"tool": "search", "args": {"words": "x"}}, {"tool": "own"}]}
    findings = found(case, {"ordered": [{"tool": "own"}]})
    assert [(each.kind, place_text(each.place)) for each in findings if each.weight == "warning"] == [
        ("refused value", "cases[0].unordered[0].args.words"),
        ("unknown tool", "cases[1].ordered[0].tool"),
    ]
    assert audit_suite(suite_of(case), {}).coverage.tools.covered == 0


STRICT: dict[str, dict[str, Any]] = {
    "code": {"type": "string", "pattern": "^[A-Z]{3}-\\d{2,}$"},
    "note": {"type": "string", "minLength": 20},
    "pages": {"type": "array", "items": {"type": "integer", "minimum": 5}, "minItems": 2},
    "buyer": {"type": "object", "required": ["name"], "properties": {"name": {"enum": ["Ada", "Mary"]}}},
    "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "kind": {"anyOf": [{"type": "integer", "multipleOf": 7, "minimum": 10}, {"type": "null"}]},
    "when": {"allOf": [{"type": "string"}, {"maxLength": 2}]},
}


@pytest.mark.parametrize("by", ["critics", "trajectory", "dimensions"])
def test_imagined_agents_make_calls_that_the_schema_accepts(by: str) -> None:
    """Else each of them fails for its arguments, and no case can be passed."""
    tool = {"name": "order", "parameters": {"properties": STRICT, "required": list(STRICT)}}
    one = {
        "name": "either",
        "parameters": {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    }
    asked = {"code": {"prefix": "A"}, "note": {"contains": "please"}, "buyer": {"present": True}}
    findings = found(
        {"ordered": [{"tool": "order"}]},
        {"ordered": [{"tool": "order", "args": asked}]},
        {"ordered": [{"tool": "either"}]},
        tools=[tool, one],
        grading={"by": by},
    )
    assert {each.kind for each in findings} <= {"weak case"}


def test_a_required_argument_that_is_forbidden_puts_a_case_out_of_reach() -> None:
    [finding] = found(expecting(forbidden_args=["query"]))
    assert finding.kind == "out of reach" and "must not be given" in finding.message


def test_a_call_of_any_tool_and_one_without_further_arguments_can_be_met() -> None:
    any_call = {"ordered": [{"tool": "*"}], "grading": {"by": "trajectory"}}
    assert [each.kind for each in found(any_call)] == ["weak case"]  # an agent that calls every tool passes
    closed = {"ordered": [{"tool": "search", "args": {"query": "Dune"}, "only_args": True}], "extra_calls": "forbid"}
    assert found(closed) == []
    assert unnoticed(closed) == []


@given(checks())
def test_what_stands_for_a_check_meets_it(check: Check) -> None:
    try:
        samples = check.samples()
    except (NeverHoldsError, UnknownSampleError):
        return
    moments = (part for part in with_parts(check) if isinstance(part, DateTime))
    unreadable = any(not evaluate(part, part.datetime).holds for part in moments)
    odd = has_kind(check, Equals, OneOf, Near, EqualsText)  # NaN is no sample of itself
    assert unreadable or odd or all(evaluate(check, value).holds for value in samples)


@given(st.lists(st.sampled_from(["query", "kind", "limit"]), unique=True), st.sampled_from(["ordered", "unordered"]))
def test_what_can_be_met_is_never_called_out_of_reach(names: list[str], where: str) -> None:
    values = {"query": "dune", "kind": {"one_of": ["film", "book"]}, "limit": {"near": 3, "tolerance": 1}}
    args = {name: values[name] for name in names} | {"query": "dune"}
    assert found({where: [{"tool": "search", "args": args}]}) == []


def test_every_deciding_grader_is_asked() -> None:
    for by in GRADERS_BY_NAME:
        suite = suite_of(expecting({"query": "dune"}), grading={"by": by})
        assert settings_of(suite, suite.cases[0]).grading.by == by
        assert {each.kind for each in audit_suite(suite, {}).findings} <= {"unnoticed"}


def test_an_audit_reads_no_file_and_starts_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    server = {"name": "b", "command": ["python", "-c", f"open({str(mark)!r}, 'w')"]}
    found(expecting({"query": {"python": "nowhere:check"}}), servers=[server])
    assert not mark.exists()
