"""The effect of a variant on a suite and its cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.engine.plan import plan_runs, sends_same_requests
from workbench.suite.added_variants import AddedVariantError, variants_in, with_variants
from workbench.suite.expected_calls import AnyOrder, ExpectedCall
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.suite.trust import needs_trust
from workbench.suite.variants import NO_VARIANTS, UnknownVariantError, Variants, variant_of, varied_case, varied_suite

SUITE = """
format = 1
name = "Weather"
system = "Help."

[[tools]]
name = "get_weather"
parameters = { type = "object", properties = { city = { type = "string" } } }

[[tools]]
name = "send"

[[mocks]]
tool = "get_weather"
when = { city = "Oslo" }
result = "rain"

[[variants]]
name = "renamed"
system = "Be terse."
offer = ["get_weather"]
mocks = [{ tool = "forecast", error = "503" }]
[[variants.servers]]
name = "mail"
command = ["mail-server"]
env = { TOKEN = "$MAIL_TOKEN" }
[[variants.tools]]
name = "send"
description = "Sends mail"
[[variants.changes]]
tool = "get_weather"
name = "forecast"
arguments = { city = "place" }

[[variants]]
name = "small"
model = "tiny"
names = { send = "mail" }

[[cases]]
name = "One"
user = "Weather?"
system = "Own."
messages = [
  { role = "user", content = "Hello" },
  { role = "assistant", tool_calls = [{ id = "1", tool = "get_weather", args = { city = "Rome" } }] },
  { role = "tool", call = "1", content = "sun" },
]
disallowed = [{ tool = "send" }]
[[cases.ordered]]
tool = "get_weather"
args = { city = "Oslo" }
forbidden_args = ["city"]
[[cases.ordered]]
any_order = [{ tool = "get_weather" }, { tool = "*" }]

[[cases]]
name = "Chain"
[[cases.steps]]
user = "Weather?"
tool = "get_weather"
args = { city = "Oslo" }
"""


def read(text: str = SUITE) -> SuiteFile:
    file = parse_suite(text, Path("suite.toml"))
    assert file.suite is not None, file.errors
    return file


def test_everything_that_names_a_renamed_tool_or_argument_follows() -> None:
    suite = read().suite
    assert suite is not None
    variant = variant_of(suite, "m × renamed")
    case, chain = (varied_case(case, variant) for case in suite.cases)
    first, group = case.ordered
    assert isinstance(first, ExpectedCall) and isinstance(group, AnyOrder)
    assert (first.tool, [*(first.args or {})], first.forbidden_args) == ("forecast", ["place"], ("place",))
    assert [call.tool for call in group.any_order] == ["forecast", "*"]
    assert case.messages[1].tool_calls[0].args == {"place": "Rome"}
    assert (case.offer, case.system, case.disallowed[0].tool) == (("forecast",), "Be terse.", "send")
    assert (chain.steps[0].tool, [*(chain.steps[0].args or {})]) == ("forecast", ["place"])
    varied = varied_suite(suite, variant)
    assert [*(varied.mocks[0].when or {})] == ["place"]
    assert [(tool.name, tool.description) for tool in varied.tools] == [("get_weather", ""), ("send", "Sends mail")]
    assert [mock.error for mock in case.mocks] == ["503"]
    assert varied_case(suite.cases[0], variant) is case
    assert varied_suite(suite, variant) is varied


EVERY_PLACE = """
format = 1
name = "Shop"
grading = { extra_calls = ["old"] }
[[tools]]
name = "old"
[[cases]]
name = "one"
user = "Go"
extra_calls = ["old"]
setup = [{ tool = "old", args = { id = "1" } }]
answers = [{ to = "elicitation", tool = "old" }]
ordered = [{ any_of = [{ tool = "old", args = { id = "1" } }, { tool = "old" }] }]
disallowed = [{ tool = "old", before = { tool = "old", args = { id = "1" } }, after = { tool = "old" } }]
[cases.final]
readers = ["ol?"]
changes = [{ tool = "old", args = { id = "1" } }]
state = [{ tool = "old", args = { id = "1" }, result = { present = true } }]
[[variants]]
name = "renamed"
changes = [{ tool = "old", name = "new", arguments = { id = "key" } }]
"""


def test_every_place_of_a_case_has_the_new_name_of_a_tool_and_of_its_argument() -> None:
    suite = read(EVERY_PLACE).suite
    assert suite is not None
    case = varied_case(suite.cases[0], suite.variants[0])
    text = case.model_dump_json(exclude_defaults=True)
    assert ('"old"' in text, '"id":"1"' in text) == (False, False)
    assert (text.count('"new"'), text.count('"key":')) == (11, 5)
    assert varied_suite(suite, suite.variants[0]).grading.extra_calls == ("new",)


def test_a_plan_has_each_model_as_it_is_and_as_each_variant_and_one_with_its_own_model_once() -> None:
    runs = plan_runs([read()], models=("a", "b"), case_ids=["one"], variants=Variants(all_of_them=True))
    assert [run.model for run in runs] == ["a", "a × renamed", "tiny × small", "b", "b × renamed"]
    assert [run.model_of_suite for run in runs] == [False, False, True, False, False]
    assert runs[2].asked_model == "tiny"
    assert runs[2].case.disallowed[0].tool == "mail"
    alone = plan_runs([read()], models=("a",), case_ids=["one"], variants=Variants(frozenset({"renamed"}), plain=False))
    assert [run.model for run in alone] == ["a × renamed"]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("Be terse.", "Be brief.", False),
        ('name = "forecast"', 'name = "outlook"', False),
        ('name = "small"', 'name = "tiny"', True),
        ('system = "Own."', 'system = "Mine."', True),
        ('name = "renamed"', 'name = "other"', False),
    ],
)
def test_a_run_of_a_variant_was_asked_the_same_while_that_variant_says_the_same(
    before: str, after: str, *, same: bool
) -> None:
    [run] = plan_runs([read()], models=("a",), case_ids=["one"], variants=Variants(frozenset({"renamed"}), plain=False))
    now = read(SUITE.replace(before, after)).suite
    assert now is not None
    assert sends_same_requests(run, now, now.cases[0]) is same


def test_what_a_variant_starts_and_reads_needs_trust() -> None:
    suite = read().suite
    assert suite is not None
    needs = needs_trust(suite, Path("suite.toml"))
    assert ([*map(str, needs.commands)], needs.environment) == (["TOKEN='$MAIL_TOKEN' mail-server"], ("MAIL_TOKEN",))


def test_variants_of_a_file_are_added_to_the_text_and_must_go_with_it(tmp_path: Path) -> None:
    more = tmp_path / "more.toml"
    more.write_text('name = "blunt"\nsystem = """\nNo.\nNever."""\n')
    added = with_variants(read(), variants_in(more), str(more))
    assert added.suite is not None
    variant = variant_of(added.suite, "m × blunt")
    assert variant is not None
    assert variant.system == "No.\nNever."
    assert parse_suite(added.text, added.path).suite == added.suite
    with pytest.raises(AddedVariantError, match=r'does not fit suite.toml: two variants with the name "blunt"'):
        with_variants(added, variants_in(more), str(more))
    with pytest.raises(UnknownVariantError, match="has no variant 'blunt'"):
        variant_of(read().suite or pytest.fail(), "m × blunt")


OWN_ONCE_MORE = "[[cases.variants]]\n"
OWN = '[[cases]]\nname = "Own"\nuser = "Go."\n' + OWN_ONCE_MORE


def test_a_case_expects_other_calls_in_a_variant_and_runs_there_alone_if_it_expects_none_otherwise() -> None:
    variants = OWN_ONCE_MORE + 'name = "renamed"\nunordered = [{ tool = "get_weather", args = { city = "Rome" } }]\n'
    both = '[[cases]]\nname = "Both"\nuser = "Go."\nordered = [{ tool = "send" }]\n' + variants
    file = read(SUITE + OWN + variants.removeprefix(OWN_ONCE_MORE) + both + '[[variants]]\nname = "x"\nsystem = ""\n')
    assert file.suite is not None, file.problems

    def planned(*, case: str, variants: Variants) -> list[tuple[str, list[str], bool]]:
        runs = plan_runs([file], models=["m"], case_ids=[case], variants=variants)
        return [(run.model, [call.tool for call in run.case.expected_calls()], bool(run.case.variants)) for run in runs]

    here = ("m × renamed", ["forecast"], False)
    assert planned(case="own", variants=NO_VARIANTS) == [here]
    assert planned(case="own", variants=Variants(all_of_them=True)) == [here]
    assert planned(case="own", variants=Variants(frozenset({"x"}), plain=False)) == []
    plain, other = ("m", ["send"], False), ("m × x", ["send"], False)
    assert planned(case="both", variants=NO_VARIANTS) == [plain]
    assert planned(case="both", variants=Variants(frozenset({"renamed", "x"}))) == [plain, here, other]


@each_row(
    ("text", "problem"),
    [
        ('[[variants]]\nname = "x"\n', "the variant changes nothing"),
        ('[[variants]]\nname = "renamed"\nsystem = ""\n', 'two variants with the name "renamed"'),
        ('[[variants]]\nname = " x"\nsystem = ""\n', "must be one line"),
        ('[[variants]]\nname = "x"\n[[variants.changes]]\ntool = "a"\n', "changes nothing"),
        (
            '[[variants]]\nname = "x"\n[[variants.changes]]\ntool = "a"\nparameters = { type = "object" }\n'
            'arguments = { a = "b" }\n',
            "renames arguments of the old schema",
        ),
        ('[[variants]]\nname = "x"\n[[variants.changes]]\ntool = "a"\nnam = "b"\n', "did you mean `name`?"),
        ('[[variants]]\nname = "x"\n[[variants.mocks]]\ntool = "a"\nresult = 1\nerror = "e"\n', "takes only one of"),
        (OWN + 'name = "renamd"\nexpect_no_calls = true\n', 'no variant "renamd" (did you mean `renamed`?)'),
        (OWN + 'name = "renamed"\n' + OWN_ONCE_MORE + 'name = "renamed"\n', 'two variants with the name "renamed"'),
        (OWN + 'name = "renamed"\nexpect_no_calls = true\nordered = [{ tool = "send" }]\n', "`ordered` expects calls"),
        (OWN + 'name = "renamed"\nordered = [{ tol = "send" }]\n', "did you mean `tool`?"),
        (OWN + 'name = "renamed"\nunordered = [{ any_order = [{ tool = "send" }] }]\n', "needs `parallel = true`"),
        (OWN + 'name = "renamed"\nresponse = "x"\n', "unknown key `response` in a variant of a case"),
    ],
)
def test_what_is_wrong_with_a_variant_is_said(text: str, problem: str) -> None:
    file = parse_suite(SUITE + text, Path("suite.toml"))
    assert [each for each in map(str, file.problems) if problem in each], [*map(str, file.problems)]
