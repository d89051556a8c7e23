"""The addresses and credentials of cloud models, by their settings and the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.config.clouds import CLOUDS, CloudSettings, checked_label, is_own_address, place_of
from workbench.config.model_book import ModelBook, ModelOptions
from workbench.config.models import ConfigError, ModelSpec

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s"}
REGION = {"AWS_REGION": "eu-west-1"}
ENTRA = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}
OTHERS = "https://others.openai.azure.com"
EVIL = "https://evil.example"


@pytest.fixture(autouse=True)
def no_files_of_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def resolved(
    folder: Path, settings: str, environment: Mapping[str, str], base_url: str | None = None, key: str | None = None
) -> ModelSpec:
    (folder / "workbench.toml").write_text(f"[models.m]\n{settings}\n")
    chosen = ModelOptions(frozenset({"m"}), base_url, key)
    book = ModelBook(folder, options=chosen, environment=lambda _folder: environment)
    return book.resolve("m", folder, by_suite=False)


@pytest.mark.parametrize(
    ("settings", "environment", "address", "credentials"),
    [
        ('provider = "azure"\nresource = "acme"', {}, "https://acme.openai.azure.com/openai/v1", "Entra ID, for which"),
        (
            'provider = "azure"\nresource = "acme"',
            ENTRA,
            "https://acme.openai.azure.com/openai/v1",
            "the Entra ID appl",
        ),
        (
            'provider = "azure"\nresource = "acme"\napi_version = "2025-04-01-preview"',
            {"AZURE_OPENAI_API_KEY": "k"},
            "https://acme.openai.azure.com/openai",
            "key AZURE_OPENAI_API_KEY",
        ),
        (
            'provider = "azure"\nresource = "acme"\ncredentials = "default"',
            {"AZURE_OPENAI_API_KEY": "k"},
            "https://acme.openai.azure.com/openai/v1",
            "Entra ID",
        ),
        (
            'provider = "azure"\nresource = "acme"\napi = "messages"',
            {"ANTHROPIC_FOUNDRY_API_KEY": "k", "AZURE_OPENAI_API_KEY": "other"},
            "https://acme.services.ai.azure.com/anthropic",
            "key ANTHROPIC_FOUNDRY_API_KEY",
        ),
        (
            'provider = "azure"',
            {"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/", "AZURE_OPENAI_API_KEY": "k"},
            "https://acme.openai.azure.com/openai/v1",
            "key AZURE_OPENAI_API_KEY",
        ),
        (
            'provider = "azure"\nbase_url = "https://acme.openai.azure.us"',
            {"AZURE_OPENAI_ENDPOINT": EVIL, "AZURE_OPENAI_API_KEY": "k"},
            "https://acme.openai.azure.us/openai/v1",
            "key AZURE_OPENAI_API_KEY",
        ),
        (
            'provider = "bedrock"\nregion = "us-east-1"\nprofile = "work"',
            {**KEYS, "AWS_BEARER_TOKEN_BEDROCK": "b", **REGION},
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            "AWS profile work, whose credential_process",
        ),
        (
            'provider = "bedrock"',
            {**KEYS, "AWS_BEARER_TOKEN_BEDROCK": "b", **REGION},
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            "key AWS_BEARER_TOKEN_BEDROCK",
        ),
        (
            'provider = "bedrock"',
            {**KEYS, **REGION, "AWS_PROFILE": "work", "ANTHROPIC_BEDROCK_BASE_URL": EVIL},
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            "the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        (
            'provider = "bedrock"\nendpoint = "mantle"',
            {**REGION, "AWS_PROFILE": "work", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL": EVIL},
            "https://bedrock-mantle.eu-west-1.api.aws/anthropic",
            "AWS profile work",
        ),
        (
            'provider = "bedrock"\nmodel = "openai.gpt-oss-120b-1:0"\ncredentials = "default"',
            {**REGION, "AWS_BEARER_TOKEN_BEDROCK": "b", "AWS_BEDROCK_BASE_URL": EVIL},
            "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
            "the AWS default credentials",
        ),
        (
            'provider = "bedrock"\nbase_url = "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"',
            {},
            "https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
            "the AWS default credentials",
        ),
        (
            'provider = "vertex"\nproject = "p-1"',
            {"GOOGLE_APPLICATION_CREDENTIALS": "sa.json", "ANTHROPIC_VERTEX_BASE_URL": EVIL},
            "https://aiplatform.googleapis.com/v1",
            "the Google credentials in the file of GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            'provider = "vertex"',
            {"CLOUD_ML_REGION": "eu"},
            "https://aiplatform.eu.rep.googleapis.com/v1",
            "the Google d",
        ),
        (
            'provider = "vertex"\nbase_url = "https://us-east5-aiplatform.googleapis.com"\nproject = "p-1"',
            {},
            "https://us-east5-aiplatform.googleapis.com/v1",
            "the Google default credentials, for which gcloud",
        ),
        (
            'provider = "vertex"\nregion = "us-east5"\nproject = "p-1"\napi_key_env = "TOKEN"',
            {"CLOUD_ML_REGION": "eu"},
            "https://us-east5-aiplatform.googleapis.com/v1",
            "key TOKEN",
        ),
    ],
)
def test_address_and_credentials_are_known_before_anything_is_asked(
    tmp_path: Path, settings: str, environment: Mapping[str, str], address: str, credentials: str
) -> None:
    spec = resolved(tmp_path, settings, environment)
    found = f"key {spec.api_key_env}" if spec.api_key_env else spec.credentials
    assert (spec.base_url, found.startswith(credentials)) == (address, True), found
    assert "evil" not in spec.description


@pytest.mark.parametrize(
    ("settings", "environment", "problem"),
    [
        ('provider = "azure"', {}, "has no address: write resource ="),
        ('provider = "azure"\napi = "messages"', {}, "or set ANTHROPIC_FOUNDRY_RESOURCE"),
        ('provider = "azure"', {"AZURE_OPENAI_ENDPOINT": EVIL}, "is not https://RESOURCE.openai.azure.com"),
        (
            'provider = "azure"',
            {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com.evil.example"},
            "which is not https",
        ),
        (
            'provider = "azure"\napi = "messages"',
            {"ANTHROPIC_FOUNDRY_RESOURCE": "evil.example/"},
            "ANTHROPIC_FOUNDRY_RES",
        ),
        (
            'provider = "azure"\nresource = "a"\nbase_url = "https://b.openai.azure.com"',
            {},
            "both resource and base_url",
        ),
        (
            'provider = "azure"\napi_version = "2025-04-01-preview"\nbase_url = "https://b.openai.azure.com/openai/v1"',
            {},
            "is an address of the v1 API",
        ),
        ('provider = "bedrock"', {}, 'has no region: write region = "us-east-1"'),
        ('provider = "bedrock"', {"AWS_REGION": "evil.example/#"}, "the region in AWS_REGION must be a region of AWS"),
        ('provider = "bedrock"\nregion = "cn-north-1"', {}, "write the address as base_url"),
        ('provider = "bedrock"\nprofile = "p"\napi_key_env = "K"', REGION, "both a key and profile"),
        ('provider = "azure"\nresource = "a"\ncredentials = "default"\napi_key_env = "K"', {}, "a key and credentials"),
        (
            'provider = "bedrock"\nbase_url = "https://bedrock-mantle.us-east-1.api.aws/anthropic"',
            {},
            'has the base_url of another endpoint: write endpoint = "mantle"',
        ),
        (
            'provider = "bedrock"\nregion = "us-east-1"\nbase_url = "https://bedrock-runtime.us-west-2.amazonaws.com"',
            {},
            "has region us-east-1, and base_url is in us-west-2",
        ),
        ('provider = "vertex"', {"GOOGLE_CLOUD_PROJECT": "../p"}, "GOOGLE_CLOUD_PROJECT may contain only"),
        ('provider = "vertex"', {"CLOUD_ML_REGION": "evil.example/"}, "CLOUD_ML_REGION may contain only"),
        ('provider = "vertex"\napi_key_env = "TOKEN"', {}, "has no project"),
        (
            f'provider = "azure"\nbase_url = "{EVIL}"',
            {"AZURE_OPENAI_API_KEY": "k"},
            "is at an address outside Azure",
        ),
        (
            f'provider = "bedrock"\nbase_url = "{EVIL}"',
            {**KEYS, **REGION},
            "is at an address outside Amazon Bedrock",
        ),
        (f'provider = "vertex"\nbase_url = "{EVIL}"', {}, "is at an address outside Google Vertex"),
    ],
)
def test_what_is_missing_or_would_redirect_is_refused_with_the_way_out(
    tmp_path: Path, settings: str, environment: Mapping[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        resolved(tmp_path, settings, environment)
    assert f"the model m {problem}" in str(raised.value) or problem in str(raised.value)
    # The list of models has the same problem, and all other models.
    (listed,) = ModelBook(tmp_path, environment=lambda _folder: environment).named(tmp_path)
    assert listed.problem == str(raised.value)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        (f'provider = "bedrock"\nbase_url = "{EVIL}"\nprofile = "work"\nregion = "us-east-1"', "AWS profile work"),
        (
            f'provider = "bedrock"\nbase_url = "{EVIL}"\ncredentials = "default"\nregion = "us-east-1"',
            "the AWS default",
        ),
        (f'provider = "vertex"\nbase_url = "{EVIL}"\ncredentials = "default"', "the Google default"),
        (f'provider = "azure"\nbase_url = "{EVIL}"\ncredentials = "default"', "Entra ID"),
    ],
)
def test_a_foreign_address_gets_credentials_that_are_named(tmp_path: Path, settings: str, allowed: str) -> None:
    spec = resolved(tmp_path, settings, {})
    assert spec.base_url.startswith(EVIL)
    assert spec.credentials.startswith(allowed)


def test_an_address_of_the_command_line_gets_no_credentials_of_the_settings(tmp_path: Path) -> None:
    settings = 'provider = "bedrock"\nregion = "us-east-1"\nprofile = "work"\ncredentials = "default"'
    with pytest.raises(ConfigError, match="credentials are sent there only on request"):
        resolved(tmp_path, settings, {}, base_url=EVIL)
    spec = resolved(tmp_path, settings, {}, base_url=EVIL, key="MINE")
    assert (spec.base_url, spec.api_key_env) == (EVIL, "MINE")
    here = resolved(tmp_path, settings, {}, key="MINE")
    assert (here.api_key_env, here.credentials) == ("MINE", ""), "a key of the command line takes the profile's place"
    own = "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com"
    assert resolved(tmp_path, settings, {}, base_url=own).credentials.startswith("AWS profile work")


def test_an_address_says_the_region(tmp_path: Path) -> None:
    vertex = 'provider = "vertex"\nproject = "p-1"\nbase_url = "https://us-east5-aiplatform.googleapis.com"'
    bedrock = 'provider = "bedrock"\nbase_url = "https://bedrock-runtime.eu-west-3.amazonaws.com"'
    for settings, region in ((vertex, "us-east5"), (bedrock, "eu-west-3")):
        place = resolved(tmp_path, settings, {"CLOUD_ML_REGION": "eu", **REGION}).place
        assert place is not None and place.region == region


@pytest.mark.parametrize(
    ("name", "environment", "api", "address"),
    [
        (
            "azure:my-gpt",
            {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com"},
            "chat",
            "https://a.openai.azure.com/",
        ),
        ("bedrock:us.anthropic.claude:0", REGION, "messages", "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ("bedrock:openai.gpt-oss:0", REGION, "chat", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"),
        ("vertex:claude-x@20260101", {}, "messages", "https://aiplatform.googleapis.com/v1"),
        ("vertex:google/gemini-x", {}, "chat", "https://aiplatform.googleapis.com/v1"),
        (
            "azure:d@https://b.cognitiveservices.azure.com",
            {},
            "chat",
            "https://b.cognitiveservices.azure.com/openai/v1",
        ),
    ],
)
def test_a_name_says_cloud_and_model(
    tmp_path: Path, name: str, environment: Mapping[str, str], api: str, address: str
) -> None:
    spec = ModelBook(tmp_path, environment=lambda _folder: environment).resolve(name, tmp_path, by_suite=True)
    assert spec.model == name.partition(":")[2].partition("@https")[0]
    assert (spec.api, spec.base_url.startswith(address), spec.origin) == (api, True, "suite")


@pytest.mark.parametrize(
    ("files", "profile", "region"),
    [
        ({"config": "[profile work]\nregion = us-west-2\n[default]\nregion = eu-west-3\n"}, "work", "us-west-2"),
        ({"config": "[profile work]\nregion = us-west-2\n[default]\nregion = eu-west-3\n"}, None, "eu-west-3"),
        (
            {"config": "[work]\nregion = us-west-2\n", "credentials": "[work]\nregion = eu-west-1\n"},
            "work",
            "eu-west-1",
        ),
        ({"config": "no section\n", "credentials": "[default]\nregion = eu-west-1\n"}, None, "eu-west-1"),
        ({"config": "[default]\nregion = evil.example/#\n"}, None, None),
    ],
)
def test_a_profile_says_the_region(
    tmp_path: Path, files: dict[str, str], profile: str | None, region: str | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    place = place_of("bedrock", CloudSettings("messages", profile=profile), "", None, {})
    if region is None:
        assert "the AWS profile default must be a region" in place.problem
    else:
        assert (place.region, place.base_url) == (region, f"https://bedrock-runtime.{region}.amazonaws.com")


@given(st.text(max_size=40))
def test_no_name_becomes_another_host_or_path(text: str) -> None:
    try:
        checked_label(text)
    except ValueError:
        return
    assert text.isascii()
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert len(text) <= 63


@each_row(
    "url",
    [
        "http://bedrock-runtime.us-east-1.amazonaws.com",
        "https://evil.s3.amazonaws.com",
        "https://bedrock-runtime.us-east-1.amazonaws.com.evil.example",
        "https://evil.example/bedrock-runtime.us-east-1.amazonaws.com",
        "https://evil.azurewebsites.azure.com",
        "https://a.b.openai.azure.com",
        "https://evil.googleapis.com",
        "https://storage.googleapis.com",
    ],
)
def test_hosts_of_other_customers_are_foreign(url: str) -> None:
    assert not any(is_own_address(cloud, url) for cloud in CLOUDS)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('provider = "bedrock"\nregion = "evil.example/#"', "4: models.m.region must be a region of AWS"),
        ('provider = "vertex"\nregion = "evil.example/"', "4: models.m.region may contain only the letters a to z"),
        ('provider = "vertex"\nproject = "a/../b"', "4: models.m.project may contain only"),
        ('provider = "azure"\nresource = "evil.example/"', "4: models.m.resource may contain only"),
        ('provider = "azure"\nregion = "us-east-1"', "4: models.m.region is for provider 'bedrock' or 'vertex' only"),
        ('provider = "openai"\napi = "chat"', "4: models.m.api is for provider 'azure' or 'bedrock' or 'vertex' only"),
        (
            'provider = "vertex"\napi = "responses"',
            "4: models.m.api must be 'messages' or 'chat' for provider 'vertex'",
        ),
        ('provider = "azure"\napi_version = "latest?x"', "4: models.m.api_version must be 'v1' or a date"),
        ('provider = "bedrock"\nprofile = "a\\u001bb"', "4: models.m.profile must be the name of a profile"),
        ('provider = "bedrock"\nendpoint = "fast"', "4: models.m.endpoint is invalid: give one of 'runtime', 'mantle'"),
        ('provider = "bedrock"\ncredentials = "mine"', "4: models.m.credentials is invalid: give 'default'"),
    ],
)
def test_wrong_settings_are_named_with_their_lines(tmp_path: Path, settings: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        resolved(tmp_path, f'model = "x"\n{settings}', REGION)
    assert str(raised.value).split("workbench.toml:")[1].startswith(said)


@pytest.mark.parametrize(
    ("of_the_process", "of_the_file", "is_refused"),
    [
        ({"AZURE_OPENAI_API_KEY": "k"}, {"AZURE_OPENAI_ENDPOINT": OTHERS}, True),
        ({}, {"AZURE_OPENAI_ENDPOINT": OTHERS}, True),
        ({}, {"AZURE_OPENAI_ENDPOINT": OTHERS, "AZURE_OPENAI_API_KEY": "k"}, False),
        ({"AZURE_OPENAI_ENDPOINT": OTHERS, "AZURE_OPENAI_API_KEY": "k"}, {}, False),
    ],
)
def test_a_dotenv_beside_a_suite_sends_no_credentials_of_the_user_elsewhere(
    tmp_path: Path, of_the_process: dict[str, str], of_the_file: dict[str, str], is_refused: bool
) -> None:
    book = ModelBook(
        tmp_path, environment=lambda _folder: {**of_the_file, **of_the_process}, own_variables=of_the_process
    )
    if is_refused:
        with pytest.raises(ConfigError, match="your own credentials to the resource that AZURE_OPENAI_ENDPOINT names"):
            book.resolve("azure:gpt", tmp_path, by_suite=False)
    else:
        assert book.resolve("azure:gpt", tmp_path, by_suite=False).base_url == f"{OTHERS}/openai/v1"
