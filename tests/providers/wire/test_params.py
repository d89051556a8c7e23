from __future__ import annotations

import pytest

from tests.providers.wire.reading import a_request, a_spec, body_of
from tests.tables import each_row
from workbench.config.models import SET_BY_PROGRAM, Provider
from workbench.providers.http.endpoints import wire_of
from workbench.trajectory.events import ToolDefinition


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic"])
def test_parameters_go_out_under_their_own_names(provider: Provider) -> None:
    spec = a_spec(provider, temperature=0.5, top_p=0.9, metadata={"a": "b"})
    body = body_of(spec, a_request())
    assert (body["temperature"], body["top_p"], body["metadata"]) == (0.5, 0.9, {"a": "b"})
    assert wire_of(spec).notices == ()


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic"])
def test_no_settings_may_hold_what_the_program_fills_in(provider: Provider) -> None:
    tools = [ToolDefinition("t")]
    with_nothing_set = body_of(a_spec(provider), a_request(system="s", tools=tools))
    assert with_nothing_set.keys() - {"max_tokens", "store"} <= set(SET_BY_PROGRAM)


def test_chat_passes_on_what_it_does_not_know() -> None:
    spec = a_spec("openai", seed=7, top_k=5, repeat_penalty=1.1, max_tokens=9)
    body = body_of(spec, a_request())
    assert (body["seed"], body["top_k"], body["repeat_penalty"], body["max_tokens"]) == (7, 5, 1.1, 9)
    assert (wire_of(spec).seed, wire_of(spec).notices) == (7, ())


@pytest.mark.parametrize("seed", [True, "7", 7.5])
def test_a_seed_that_is_no_whole_number_is_none(seed: bool | str | float) -> None:
    assert wire_of(a_spec("openai", seed=seed)).seed is None


@each_row(
    ("provider", "api", "name"),
    [
        *(("openai-responses", "Responses", name) for name in ("seed", "stop", "n", "presence_penalty", "top_k")),
        *(("anthropic", "Messages", name) for name in ("seed", "n", "frequency_penalty", "logit_bias", "store")),
    ],
)
def test_what_an_api_does_not_have_is_not_sent_and_said(provider: Provider, api: str, name: str) -> None:
    spec = a_spec(provider, **{name: 1})
    assert body_of(spec, a_request()) == body_of(a_spec(provider), a_request())
    assert wire_of(spec).notices == (f"params.{name} is not sent to mine: the {api} API has no such parameter",)
    assert wire_of(spec).seed is None


def test_a_notice_says_what_to_write_instead() -> None:
    (notice,) = wire_of(a_spec("anthropic", stop=["x"])).notices
    assert notice.endswith("the Messages API has no such parameter, write stop_sequences instead")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_longest_answer_has_one_name_in_each_api(name: str) -> None:
    assert body_of(a_spec("openai-responses", **{name: 9}), a_request())["max_output_tokens"] == 9
    assert body_of(a_spec("anthropic", **{name: 9}), a_request())["max_tokens"] == 9


def test_of_two_names_for_one_parameter_the_api_s_own_counts() -> None:
    spec = a_spec("anthropic", max_output_tokens=1, max_tokens=2)
    assert body_of(spec, a_request())["max_tokens"] == 2
    assert wire_of(spec).notices == ("params.max_output_tokens is not sent to mine: params.max_tokens says the same",)
