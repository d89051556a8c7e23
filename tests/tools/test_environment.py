"""References to environment variables, and how their values stay out of sight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.config.variables import environment_names
from workbench.suite.server_model import Server
from workbench.tools.connection import MissingVariableError, expand_variables, register_server_secrets

ENVIRONMENT = {"HOME_TOKEN": "abc-123", "HOST": "example.test"}


@each_row(
    ("text", "value"),
    [
        ("$HOME_TOKEN", "abc-123"),
        ("${HOME_TOKEN}", "abc-123"),
        ("Bearer ${HOME_TOKEN}!", "Bearer abc-123!"),
        ("https://$HOST/$HOME_TOKEN", "https://example.test/abc-123"),
        ("$$HOME_TOKEN", "$HOME_TOKEN"),
        ("costs $$5 or $5 or $", "costs $5 or $5 or $"),
        ("${}", "${}"),
        ("${HOST", "${HOST"),
    ],
)
def test_references_are_replaced_and_other_dollar_signs_stay(text: str, value: str) -> None:
    assert expand_variables(text, ENVIRONMENT, Secrets()) == value


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(MissingVariableError) as caught:
        expand_variables("$HOST and ${NOT_SET}", ENVIRONMENT, Secrets())
    assert caught.value.name == "NOT_SET"


def test_a_value_is_not_filled_again() -> None:
    assert expand_variables("$A", {"A": "$B", "B": "no"}, Secrets()) == "$B"


@given(st.text())
def test_doubled_dollar_signs_give_any_text_back(text: str) -> None:
    assert expand_variables(text.replace("$", "$$"), {}, Secrets()) == text


class Asked(dict[str, str]):
    """An environment that has every variable and remembers which were read."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        self[name] = ""
        return ""


@given(st.text("${}AZaz_09é\n", max_size=20))
def test_exactly_the_variables_that_a_user_is_asked_to_trust_are_read(text: str) -> None:
    asked = Asked()
    expand_variables(text, asked, Secrets())
    assert asked.keys() == set(environment_names(text))


def test_exactly_the_values_that_are_used_are_secret_from_then_on() -> None:
    secrets = Secrets()
    expand_variables("Bearer $HOME_TOKEN", ENVIRONMENT, secrets)
    assert secrets.redact("abc-123 at example.test") == "$HOME_TOKEN at example.test"


def test_what_a_suite_writes_out_for_a_server_is_secret_only_where_it_authorises_or_looks_like_a_key() -> None:
    secrets = Secrets()
    written = {
        "name": "shop",
        "url": "https://ann:open-sesame@shop.test/mcp",
        "headers": {"Authorization": "Bearer plain", "X-Api-Key": "sk-4711-0815", "X-Mode": "production"},
    }
    register_server_secrets(Server.model_validate(written), secrets)
    register_server_secrets(
        Server(name="s", command=("x",), env={"MODE": "prod", "KEY": "$HOST", "API_TOKEN": "t0ken-4711"}), secrets
    )
    said = "plain sk-4711-0815 production prod t0ken-4711 https://ann:open-sesame@shop.test"
    assert secrets.redact(said) == "$AUTHORIZATION $X_API_KEY production prod $API_TOKEN https://ann:$shop@shop.test"


def test_programs_inherit_what_the_sdk_lets_them_inherit() -> None:
    from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS

    from workbench.tools.connection import INHERITED

    assert list(INHERITED) == DEFAULT_INHERITED_ENV_VARS
