"""A model is added to a `workbench.toml` as it was typed, and nothing else in the file changes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.config.folders import Folders
from workbench.config.models import PRESETS, ConfigError, ModelSpec, Preset, Price
from workbench.config.program import Program, create_program
from workbench.config.settings_file import read_settings
from workbench.evaluation.typed_model import (
    InvalidModelError,
    TypedModel,
    add_model,
    change_model,
    named_model,
    settings_file,
    usual_name,
    usual_owner,
    with_model,
)

LOCAL = Preset("local", "Local", "http://localhost:1234/v1")
SETTINGS = """# The models of the project.
judge = "strict"   # decides

[models.strict]
provider = 'openai' # quoted as I like it
price = { input = 1, output = 2 }

# the end
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    state = tmp_path / "state"
    return create_program(Folders(state, state / "log", state / "config", state / "data"), {"HOME": str(tmp_path)})


def folder_of_suites(tmp_path: Path, settings: str | None = None) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    if settings is not None:
        (folder / "workbench.toml").write_bytes(settings.encode())
    return folder


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_model_is_added_after_all_that_was_there(tmp_path: Path, program: Program, line_end: str) -> None:
    before = SETTINGS.replace("\n", line_end)
    folder = folder_of_suites(tmp_path, before)
    typed = TypedModel("openai", "http://localhost:1234/v1/", "llama-3.1", "", "local", "0.5, 1, 0.1")
    assert usual_owner(program, folder) == "project"
    file = add_model(typed.spec("project"), folder, program, "project")
    assert file == folder / "workbench.toml"
    assert file.read_bytes().decode() == before + line_end + line_end.join(
        [
            "[models.local]",
            'provider = "openai"',
            'base_url = "http://localhost:1234/v1"',
            'model = "llama-3.1"',
            "price = {input = 0.5, output = 1.0, cached_input = 0.1}",
            "",
        ]
    )
    (spec,) = (spec for spec in program.models.named(folder) if spec.name == "local")
    assert (spec.model, spec.base_url, spec.price) == ("llama-3.1", "http://localhost:1234/v1", Price(0.5, 1, 0.1))
    assert (spec.origin, spec.file) == ("project", file)
    with pytest.raises(ConfigError, match=r"workbench\.toml already names a model 'local': choose another name"):
        add_model(typed.spec("project"), folder, program, "user")


def test_the_users_file_is_made_when_it_is_first_needed(tmp_path: Path, program: Program) -> None:
    folder = folder_of_suites(tmp_path)
    assert usual_owner(program, folder) == "user"
    spec = TypedModel.of_preset(next(each for each in PRESETS if each.name == "openai"), "gpt-4o-mini").spec()
    file = add_model(spec, folder, program, "user")
    assert file == settings_file(program, folder, "user") == tmp_path / "state" / "config" / "workbench.toml"
    assert file.read_text() == '[models.gpt-4o-mini]\nprovider = "openai"\n'
    assert program.models.resolve("gpt-4o-mini", folder, by_suite=True).api_key_env == "OPENAI_API_KEY"


def test_what_is_wrong_is_told_field_by_field_and_never_quotes_a_key() -> None:
    typed = TypedModel("opnai", "http://u:hidden@h/v1", "", "sk-hidden-0123456789-abcdefghi", "a b", "cheap")
    with pytest.raises(InvalidModelError) as raised:
        typed.spec()
    problems = raised.value.problems
    assert list(problems) == ["provider", "base_url", "api_key_env", "model", "name", "price"]
    assert problems["provider"] == "must be one of openai, openai-responses, anthropic, azure, bedrock, vertex"
    assert "such as 0.15, 0.6" in problems["price"]
    assert "hidden" not in str(raised.value)


@each_row("price", ["1", "1,2,3,4", "-1, 2", "nan, 1", "inf, 1", "1 2"])
def test_a_price_is_two_or_three_numbers(price: str) -> None:
    with pytest.raises(InvalidModelError, match="US dollars per million tokens"):
        TypedModel(model="m", name="m", price=price).spec()


@pytest.mark.parametrize(
    ("settings", "said"),
    [("[models.a]\n", "models.a.provider is missing"), ("a =", "is not valid TOML"), ("\xff", "is not valid TOML")],
)
def test_a_broken_file_is_left_as_it_is(tmp_path: Path, program: Program, settings: str, said: str) -> None:
    folder = folder_of_suites(tmp_path, settings)
    with pytest.raises(ConfigError, match=said):
        add_model(TypedModel(model="m", name="m").spec("project"), folder, program, "project")
    assert (folder / "workbench.toml").read_bytes() == settings.encode()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, program: Program) -> None:
    folder = folder_of_suites(tmp_path)
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(ConfigError, match=r"config.*workbench\.toml cannot be"):
        add_model(TypedModel(model="m", name="m").spec(), folder, program, "user")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeff",
        "\ufeff# only a comment",
        'models = { a = { provider = "openai" } } # in one line\njudge = "a"\n',
        '[models]\na = { provider = "openai" }\n# below\n',
        '[models]\na.provider = "openai"\n[models.b]\nprovider = "openai"\n',
    ],
)
def test_however_the_models_are_written(tmp_path: Path, text: str) -> None:
    made = with_model(text, TypedModel(model="m/x:1", name="new").spec())
    assert made is not None
    assert all(comment in made for comment in ("# only a comment", "# in one line", "# below") if comment in text)
    file = tmp_path / "workbench.toml"
    file.write_bytes(made.encode())
    before = tomllib.loads(text.lstrip("\ufeff")).get("models", {})
    assert list(read_settings(file, "user").models) == [*before, "new"]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=":"), min_size=1)
MODELS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" "), min_size=1).map(
    str.strip
)


@given(NAMES.filter(lambda name: name not in ("offline", "strict")), MODELS.filter(bool))
def test_any_name_can_be_written_and_read(name: str, model: str) -> None:
    spec = TypedModel(model=model, name=name, base_url=LOCAL.base_url, api_key_env="MY_KEY").spec()
    made = with_model(SETTINGS, spec)
    assert made is not None
    assert made.startswith(SETTINGS)
    written = tomllib.loads(made)["models"][name]
    assert (written.get("model", name), written["api_key_env"]) == (model, "MY_KEY")


@given(st.text())
def test_the_name_that_is_proposed_can_be_taken(model: str) -> None:
    name = usual_name(LOCAL, model)
    assert not name or TypedModel(model="m", name=name).spec().name == name


def test_a_preset_reaches_what_it_says() -> None:
    for preset in PRESETS:
        spec = TypedModel.of_preset(preset, "some/model").spec()
        expected = (preset.provider, preset.base_url, preset.api_key_env, "model")
        assert (spec.provider, spec.base_url, spec.api_key_env, spec.name) == expected
        assert isinstance(spec, ModelSpec)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_model_is_changed_and_all_that_was_not_typed_stays(tmp_path: Path, program: Program, line_end: str) -> None:
    before = SETTINGS.replace("'openai' #", "'openai'  #").replace(
        "price = {", "params = { temperature = 0 } # calm\nprice = {"
    )
    folder = folder_of_suites(tmp_path, before.replace("\n", line_end))
    known = named_model("strict", folder, program)
    assert known is not None and named_model("none", folder, program) is None
    typed = TypedModel.of_spec(known)
    assert (typed.name, typed.model, typed.price) == ("strict", "strict", "1, 2")
    file = change_model(known, typed.spec("project"))
    assert file.read_bytes().decode() == before.replace("\n", line_end), "nothing was changed"
    changed = TypedModel("anthropic", "http://localhost:1/v1", "big", "SOME_KEY", "strict", "3, 4")
    change_model(known, changed.spec("project"))
    after = file.read_bytes().decode()
    assert after.count("\n") == after.count(line_end)
    kept = (
        "# The models of the project.",
        "# decides",
        "# quoted as I like it",
        "{ temperature = 0 } # calm",
        "# the end",
    )
    assert all(text in after for text in kept)
    spec = named_model("strict", folder, program)
    assert spec is not None and dict(spec.params) == {"temperature": 0}
    assert TypedModel.of_spec(spec) == changed


def test_a_changed_model_must_still_be_there(tmp_path: Path, program: Program) -> None:
    folder = folder_of_suites(tmp_path, SETTINGS)
    known = named_model("strict", folder, program)
    assert known is not None
    (folder / "workbench.toml").write_text("# gone")
    with pytest.raises(ConfigError, match="no longer has a model 'strict'"):
        change_model(known, known)
