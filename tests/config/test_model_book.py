"""The access to a model follows from its name, in a `workbench.toml` or as a full name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.config.model_book import ModelBook, ModelOptions
from workbench.config.models import ConfigError, JudgeChoice, ModelSpec, Price, UnknownModelError

LOCAL = '[models.local]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\n'
ANYWHERE = Path("anywhere")


def book(config: Path = Path("none"), **options: object) -> ModelBook:
    return ModelBook(config, options=ModelOptions(**options))  # type: ignore[arg-type]


def resolved(name: str, folder: Path = ANYWHERE, *, by_suite: bool = False, config: Path = Path("none")) -> ModelSpec:
    return book(config).resolve(name, folder, by_suite=by_suite)


def settings(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "workbench.toml").write_text(text, encoding="utf-8")
    return folder


# Full names


@each_row(
    ("name", "provider", "model", "base_url", "key"),
    [
        ("openai:gpt-4o-mini", "openai", "gpt-4o-mini", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openai-responses:gpt-5", "openai-responses", "gpt-5", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("anthropic:claude", "anthropic", "claude", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("openai:llama3.1:8b@http://localhost:1/v1/", "openai", "llama3.1:8b", "http://localhost:1/v1", None),
        ("openai:@cf/meta/l@2@https://h.test/v1", "openai", "@cf/meta/l@2", "https://h.test/v1", None),
        ("openai:m@https://api.openai.com/v1", "openai", "m", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openai:a@http://b@http://c", "openai", "a@http://b", "http://c", None),
    ],
)
def test_a_name_with_a_provider_says_it_all(
    name: str, provider: str, model: str, base_url: str, key: str | None
) -> None:
    spec = resolved(name)
    assert (spec.name, spec.provider, spec.model, spec.base_url, spec.api_key_env) == (
        name,
        provider,
        model,
        base_url,
        key,
    )


@given(st.text(min_size=1).filter(lambda model: "@" not in model))
def test_any_other_text_behind_a_provider_is_the_model(model: str) -> None:
    assert resolved(f"openai:{model}").model == model


def test_who_names_a_model_is_remembered() -> None:
    assert resolved("openai:m", by_suite=True).origin == "suite"
    assert resolved("openai:m", by_suite=False).origin == "command line"


@pytest.mark.parametrize("name", ["openai", "openai:", "openai:@http://localhost/v1"])
def test_a_provider_without_a_model_is_none(name: str) -> None:
    with pytest.raises(UnknownModelError, match="is not followed by a model"):
        resolved(name)


@pytest.mark.parametrize("place", ["localhost:4700/v1", "localhost", "10.0.0.1:80", "[::1]:1/v1", "api.h.test/v1"])
def test_an_address_without_its_http_is_no_part_of_the_models_name(place: str) -> None:
    with pytest.raises(ConfigError) as raised:
        resolved(f"openai:me:hidden@{place}")
    assert f"did you mean openai:MODEL@http://{place}?" in str(raised.value)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("model", ["@cf/meta/llama", "claude@20250101", "m@v1.2", "m@sha256:" + "0a" * 32])
def test_an_at_sign_alone_makes_no_address(model: str) -> None:
    assert resolved(f"openai:{model}").model == model


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "azure_key", "A_VERY_LONG_NAME_OF_A_VARIABLE_2"])
def test_names_by_convention_are_names_of_variables(variable: str) -> None:
    assert ModelOptions(api_key_env=variable).api_key_env == variable


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="api_key_env") as raised:
        resolved("openai:m@https://me:hidden@h.test/v1")
    assert "hidden" not in str(raised.value)


# Names of a workbench.toml


def test_a_named_model_has_everything_its_table_says(tmp_path: Path) -> None:
    settings(
        tmp_path,
        """
        [models.all]
        provider = "anthropic"
        base_url = "https://gateway.test/anthropic/"
        model = "claude"
        api_key_env = "GATEWAY_KEY"
        params = { max_tokens = 100, thinking = { type = "enabled" } }
        price = { input = 3, output = 15.5, cached_input = 0.3 }
        concurrency = 2
        requests_per_minute = 0.5
        read_timeout_s = 10
        legacy_auth = true
        """,
    )
    assert resolved("all", tmp_path) == ModelSpec(
        name="all",
        provider="anthropic",
        model="claude",
        base_url="https://gateway.test/anthropic",
        api_key_env="GATEWAY_KEY",
        params={"max_tokens": 100, "thinking": {"type": "enabled"}},
        price=Price(3, 15.5, 0.3),
        concurrency=2,
        requests_per_minute=0.5,
        read_timeout_s=10,
        legacy_auth=True,
        origin="project",
        file=tmp_path / "workbench.toml",
    )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("silence_s = 10", 10), ("silence_s = 10\nread_timeout_s = 20", 20)],
    ids=["earlier", "both"],
)
def test_the_earlier_name_of_a_setting_is_still_read(tmp_path: Path, written: str, seconds: float) -> None:
    settings(tmp_path, f'[models.slow]\nprovider = "openai"\n{written}\n')
    assert resolved("slow", tmp_path).read_timeout_s == seconds


def test_a_model_may_be_called_like_its_provider(tmp_path: Path) -> None:
    folder = settings(tmp_path, '[models.openai]\nprovider = "openai"\nmodel = "gpt-4o-mini"\n')
    assert resolved("openai", folder).model == "gpt-4o-mini"


def test_what_a_table_leaves_out_is_the_vendors_own(tmp_path: Path) -> None:
    settings(tmp_path, '[models.gpt-4o-mini]\nprovider = "openai"\n[models.other]\nprovider = "anthropic"\n' + LOCAL)
    spec = resolved("gpt-4o-mini", tmp_path)
    assert (spec.model, spec.base_url, spec.api_key_env, spec.params, spec.read_timeout_s) == (
        "gpt-4o-mini",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        {},
        100,
    )
    assert resolved("other", tmp_path).api_key_env == "ANTHROPIC_API_KEY"
    assert resolved("local", tmp_path).api_key_env is None


def test_the_nearest_file_counts_and_then_the_users(tmp_path: Path) -> None:
    outer = settings(tmp_path / "a", LOCAL)
    inner = settings(tmp_path / "a" / "b", LOCAL.replace(":1/", ":2/"))
    config = settings(tmp_path / "config", LOCAL.replace(":1/", ":3/") + LOCAL.replace("local]", "mine]"))
    (inner / "c").mkdir()
    assert resolved("local", inner / "c", config=config).base_url == "http://localhost:2/v1"
    assert resolved("local", outer, config=config).base_url == "http://localhost:1/v1"
    assert resolved("local", tmp_path, config=config).base_url == "http://localhost:3/v1"
    assert resolved("mine", inner, config=config).origin == "user"
    names = [(spec.name, spec.origin) for spec in book(config).named(inner)]
    assert names == [("local", "project"), ("mine", "user")]
    assert [spec.name for spec in book(config).of_project(inner)] == ["local"]


@pytest.mark.parametrize("root", [".git", "pyvenv.cfg"])
def test_nothing_above_the_root_of_a_project_counts(tmp_path: Path, root: str) -> None:
    settings(tmp_path, LOCAL)
    suites = tmp_path / "repository" / "suites"
    suites.mkdir(parents=True)
    (tmp_path / "repository" / root).touch()
    assert book().named(suites) == ()
    settings(tmp_path / "repository", LOCAL)
    assert [spec.name for spec in book().named(suites)] == ["local"]


def test_nothing_above_the_users_home_counts(tmp_path: Path) -> None:
    settings(tmp_path, LOCAL)
    suites = tmp_path / "home" / "suites"
    suites.mkdir(parents=True)
    assert ModelBook(Path("none"), home=tmp_path / "home").named(suites) == ()


def test_suites_in_the_users_config_folder_see_their_file_as_the_users(tmp_path: Path) -> None:
    settings(tmp_path, LOCAL)
    assert resolved("local", tmp_path, config=tmp_path).origin == "user"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    models = book()
    settings(tmp_path, LOCAL)
    assert models.resolve("local", tmp_path, by_suite=True).base_url == "http://localhost:1/v1"
    settings(tmp_path, LOCAL.replace(":1/", ":1234/"))
    assert models.resolve("local", tmp_path, by_suite=True).base_url == "http://localhost:1234/v1"


def test_an_unknown_name_says_what_there_is_and_how_to_write_one(tmp_path: Path) -> None:
    settings(tmp_path, LOCAL)
    with pytest.raises(UnknownModelError) as raised:
        resolved("lokal", tmp_path)
    message = str(raised.value)
    assert "did you mean 'local'? there are offline, local;" in message
    assert "openai:lokal@http://localhost:1234/v1" in message


# Names on the command line


def test_an_address_makes_any_name_a_model() -> None:
    models = book(models=frozenset({"llama3.1:8b"}), base_url="http://localhost:1/v1/", api_key_env="MY_KEY")
    spec = models.resolve("llama3.1:8b", ANYWHERE, by_suite=False)
    assert spec == ModelSpec(
        "llama3.1:8b", "openai", "llama3.1:8b", "http://localhost:1/v1", "MY_KEY", origin="command line"
    )


def test_an_address_keeps_the_provider_but_is_not_sent_the_vendors_key() -> None:
    models = book(models=frozenset({"anthropic:x"}), base_url="http://localhost:1")
    spec = models.resolve("anthropic:x", ANYWHERE, by_suite=False)
    assert (spec.provider, spec.model, spec.base_url, spec.api_key_env) == (
        "anthropic",
        "x",
        "http://localhost:1",
        None,
    )


def test_an_address_makes_a_projects_model_the_users_but_params_alone_do_not(tmp_path: Path) -> None:
    settings(tmp_path, LOCAL + 'params = { a = 1, b = 1 }\napi_key_env = "THEIR_KEY"\n')
    moved = book(models=frozenset({"local"}), base_url="http://localhost:9/v1")
    spec = moved.resolve("local", tmp_path, by_suite=False)
    assert (spec.base_url, spec.api_key_env, spec.origin) == ("http://localhost:9/v1", None, "command line")
    tuned = book(models=frozenset({"local"}), params={"b": 2}).resolve("local", tmp_path, by_suite=False)
    assert (tuned.params, tuned.origin) == ({"a": 1, "b": 2}, "project")


@pytest.mark.parametrize("name", ["openai:m@http://localhost:1/v1", "m@http://localhost:1/v1"])
def test_an_address_in_the_name_is_not_replaced_silently(name: str) -> None:
    models = book(models=frozenset({name}), base_url="http://localhost:2/v1")
    with pytest.raises(ConfigError, match="omit this address, or --base-url"):
        models.resolve(name, ANYWHERE, by_suite=False)


def test_what_the_command_line_says_does_not_hold_for_what_a_suite_names() -> None:
    models = book(models=frozenset({"openai:m"}), base_url="http://localhost:1/v1")
    assert models.resolve("openai:m", ANYWHERE, by_suite=True).base_url == "https://api.openai.com/v1"
    assert models.resolve("openai:other", ANYWHERE, by_suite=False).base_url == "https://api.openai.com/v1"


def test_everything_wrong_with_the_options_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        ModelOptions(frozenset(), "ftp://h", "sk-hidden", {"stream": True})
    assert [problem.split()[0] for problem in raised.value.problems] == ["--base-url", "--api-key-env", "--param"]
    assert "hidden" not in str(raised.value)


# Judges


def test_the_command_line_chooses_the_judge_before_the_suites_settings_and_these_before_the_users(
    tmp_path: Path,
) -> None:
    project = settings(tmp_path / "project", 'judge = "local"\n' + LOCAL)
    users = settings(tmp_path / "config", 'judge = "openai:gpt"\n')
    assert book(users).judge(ANYWHERE) == JudgeChoice("openai:gpt")
    assert book(users).judge(project) == JudgeChoice("local", by_suite=True)
    assert book(users, judge="anthropic:x").judge(project) == JudgeChoice("anthropic:x")
    assert book().judge(ANYWHERE) is None


def test_a_judge_that_there_is_not_is_a_problem_of_the_settings(tmp_path: Path) -> None:
    project = settings(tmp_path, 'judge = "locale"\n' + LOCAL)
    [problem] = book().problems(project)
    assert problem.startswith("the judge 'locale': there is no model 'locale': did you mean 'local'?")


@pytest.mark.parametrize("name", ["offline", "replay:runs", ""])
def test_what_is_no_language_model_cannot_be_chosen_as_the_judge(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"^--judge must "):
        book(judge=name)
    project = settings(tmp_path, f'judge = "{name}"\n')
    assert [problem.partition(":1: ")[2][:11] for problem in book().problems(project)] == ["judge must "]


def test_a_judge_below_a_table_is_told_where_it_belongs(tmp_path: Path) -> None:
    [problem] = book().problems(settings(tmp_path, LOCAL + 'judge = "local"\n'))
    assert "above the first [table]" in problem
