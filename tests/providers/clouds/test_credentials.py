"""Credentials from profiles, programs, files and token services: requested once for all runs, and renewed."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.providers.clouds.asking import AWS_KEYS, answer_for, cloud_spec
from tests.providers.clouds.frames import frames_of, streamed
from tests.providers.clouds.signatures import is_signed, signed_parts
from tests.providers.http.asking import ask, text_of
from tests.providers.server import Answer, Request, Server, document, serve
from tests.sampled_rows import first_of
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.clouds.credentials import RenewableCredentials, Token
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import ModelError

SIGNED = 'provider = "bedrock"\nmodel = "x"\nregion = "us-east-1"'
VERTEX = 'provider = "vertex"\nmodel = "x"\ncredentials = "default"'
AZURE = 'provider = "azure"\nmodel = "x"\ncredentials = "default"'

PROGRAM = """
import json, pathlib, time
runs = pathlib.Path(__file__).with_suffix(".runs")
count = len(runs.read_text()) if runs.exists() else 0
runs.write_text("." * (count + 1))
ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + {lifetime}))
print(json.dumps({{"Version": 1, "AccessKeyId": f"AKID{{count}}", "SecretAccessKey": f"planted-secret-{{count}}",
                   "SessionToken": f"planted-session-token-{{count}}", "Expiration": ends}}))
"""


def says(api: str, *, binary: bool = False) -> Callable[[Request], Answer]:
    return lambda _request: answer_for(api, "Hi.", binary=binary)


async def ask_at_once(spec: ModelSpec, secrets: Secrets, times: int, environment: dict[str, str]) -> None:
    endpoints = Endpoints(secrets)
    try:
        answers = await asyncio.gather(*(ask(spec, environment, endpoints) for _ in range(times)))
    finally:
        await endpoints.close()
    assert list(map(text_of, answers)) == ["Hi."] * times


def profile(folder: Path, text: str) -> None:
    (folder / "aws-config").write_text(text)


@pytest.mark.parametrize(("lifetime", "times"), [pytest.param(3600, 10, marks=pytest.mark.slow), (60, 1)])
async def test_a_program_of_a_profile_is_started_once_for_all_and_again_before_its_keys_expire(
    tmp_path: Path, lifetime: int, times: int
) -> None:
    program = tmp_path / "keys.py"
    program.write_text(PROGRAM.format(lifetime=lifetime))
    profile(tmp_path, f"[profile work]\ncredential_process = {sys.executable} {program}\n")
    secrets = Secrets()
    with Server(says("messages", binary=True)) as server:
        spec = cloud_spec(server, tmp_path, f'{SIGNED}\nprofile = "work"', {})
        await ask_at_once(spec, secrets, times, {})
    runs = len((tmp_path / "keys.runs").read_text())
    if lifetime == 3600:
        assert runs == 1
    else:
        # Keys that end soon are fetched for each request, and the last ones sign it.
        assert f"AKID{runs - 1}/" in server.requests[-1].headers["authorization"]
        assert runs > 1
    for request in server.requests:
        number = signed_parts(request)["Credential"].partition("/")[0].removeprefix("AKID")
        assert is_signed(request, f"planted-secret-{number}", "us-east-1", "bedrock")
        # The keys of each run are secrets from then on.
        assert "planted" not in secrets.redact(f"{request.headers} planted-secret-{number}")


@pytest.mark.parametrize(("left_s", "is_used"), [(100.0, True), (-1.0, False)])
async def test_a_token_that_cannot_be_renewed_is_used_until_it_ends(left_s: float, is_used: bool) -> None:
    tokens = [Token("planted-first-token", time.time() + left_s)]

    def fetch() -> Token:
        if not tokens:
            raise ModelError("the service of tokens is away")
        return tokens.pop()

    credentials = RenewableCredentials(fetch, lambda token: {"TOKEN": token.value}, Secrets())
    await credentials.current()
    if is_used:
        assert (await credentials.current()).value == "planted-first-token"
    else:
        with pytest.raises(ModelError, match="the service of tokens is away"):
            await credentials.current()
    credentials.forget()
    with pytest.raises(ModelError, match="the service of tokens is away"):
        await credentials.current()


async def test_refused_keys_are_read_again_for_the_next_request(tmp_path: Path) -> None:
    profile(tmp_path, "[profile work]\naws_access_key_id = AKIDOLD0\naws_secret_access_key = old-secret-key-0123\n")
    expired = {"message": "The security token included in the request is expired"}
    refusal = document(expired, 403, {"x-amzn-errortype": "ExpiredTokenException:"})
    endpoints = Endpoints(Secrets())
    with serve(refusal, streamed(*frames_of("Hi."))) as server:
        spec = cloud_spec(server, tmp_path, f'{SIGNED}\nprofile = "work"', {})
        with pytest.raises(ModelError, match="run 'aws sso login --profile work'"):
            await ask(spec, {}, endpoints)
        profile(tmp_path, "[profile work]\naws_access_key_id = AKIDNEW0\naws_secret_access_key = new-secret-key-0123\n")
        assert text_of(await ask(spec, {}, endpoints)) == "Hi."
    await endpoints.close()
    assert is_signed(server.requests[0], "old-secret-key-0123", "us-east-1", "bedrock")
    assert is_signed(server.requests[1], "new-secret-key-0123", "us-east-1", "bedrock")


async def test_a_refused_model_does_not_start_the_program_again(tmp_path: Path) -> None:
    program = tmp_path / "keys.py"
    program.write_text(PROGRAM.format(lifetime=3600))
    profile(tmp_path, f"[profile work]\ncredential_process = {sys.executable} {program}\n")
    refusal = document({"message": "You don't have access to the model with the specified model ID."}, 403)
    endpoints = Endpoints(Secrets())
    with serve(refusal, refusal) as server:
        spec = cloud_spec(server, tmp_path, f'{SIGNED}\nprofile = "work"', {})
        for _ in range(2):
            with pytest.raises(ModelError, match="does not let AWS profile work use x"):
                await ask(spec, {}, endpoints)
    await endpoints.close()
    assert (tmp_path / "keys.runs").read_text() == "."


SSO = "sso_start_url = https://acme.awsapps.com/start\nsso_region = us-east-1\nsso_account_id = 1\nsso_role_name = r\n"


@pytest.mark.parametrize(
    ("config", "settings", "said"),
    [
        (
            "",
            'profile = "work"',
            "there is no AWS profile work: correct profile or AWS_PROFILE, or run 'aws configure -",
        ),
        (f"[profile work]\n{SSO}", 'profile = "work"', "run 'aws sso login --profile work'"),
        ("", 'credentials = "default"', "no AWS credentials are found: run 'aws configure' or 'aws sso login'"),
        (
            f"[profile work]\ncredential_process = {sys.executable} -c exit(3)\n",
            'profile = "work"',
            "AWS profile work cannot be used: Error when retrieving credentials from custom-process",
        ),
        ("[profile work\n", 'profile = "work"', "AWS profile work cannot be used: Unable to parse config file"),
    ],
)
async def test_missing_or_expired_credentials_of_aws_have_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, settings: str, said: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    profile(tmp_path, config)
    with serve() as server:
        spec = cloud_spec(server, tmp_path, f"{SIGNED}\n{settings}", {})
        with pytest.raises(ModelError) as raised:
            await ask(spec, {})
    assert said in str(raised.value)
    assert server.url in str(raised.value)
    assert not server.requests


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, without = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, without).decode()


class Google:
    """A server that is Vertex and Google's service of tokens."""

    def __init__(self, lifetime_s: int, refusal: Answer | None = None) -> None:
        self.tokens = 0
        self._lifetime_s = lifetime_s
        self._refusal = refusal

    def __call__(self, request: Request) -> Answer:
        if request.path != "/token":
            return answer_for("messages", "Hi.")
        self.tokens += 1
        if self._refusal is not None:
            return self._refusal
        assert "assertion" in parse_qs(request.body.decode())
        return document({"access_token": f"planted-google-token-{self.tokens}", "expires_in": self._lifetime_s})


def service_account(folder: Path, server: Server, key: str) -> dict[str, str]:
    file = folder / "account.json"
    account = {
        "type": "service_account",
        "client_email": "a@b.example",
        "private_key": key,
        "project_id": "own-project",
    }
    file.write_text(json.dumps({**account, "token_uri": f"{server.url}/token"}))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}


@pytest.mark.parametrize("in_environment", [True, False])
async def test_ten_first_requests_fetch_one_token_and_the_project_of_the_credentials(
    tmp_path: Path, private_key: str, monkeypatch: pytest.MonkeyPatch, in_environment: bool
) -> None:
    google = Google(3600)
    secrets = Secrets()
    with Server(google) as server:
        environment = service_account(tmp_path, server, private_key)
        if not in_environment:
            # As Google's library finds it, not by a `.env`.
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", environment.pop("GOOGLE_APPLICATION_CREDENTIALS"))
        await ask_at_once(cloud_spec(server, tmp_path, VERTEX, environment), secrets, 10, environment)
    assert google.tokens == 1
    asked = [request for request in server.requests if request.path != "/token"]
    assert {request.headers["authorization"] for request in asked} == {"Bearer planted-google-token-1"}
    assert all("/projects/own-project/locations/global/" in request.path for request in asked)
    assert secrets.redact("planted-google-token-1") == "$GOOGLE_ACCESS_TOKEN"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be used: No such file or directory"),
        ("{", "cannot be used: it is not a file of Google credentials"),
        ('{"type": "service_account"}', "cannot be used: it is not a file of Google credentials"),
        (
            '{"type": "external_account", "audience": "a", "subject_token_type": "t", "token_url": "URL/token",'
            ' "credential_source": {"file": "/etc/passwd"}}',
            "nor a user: a file of another kind must be named in the environment, not in .env",
        ),
    ],
)
async def test_a_file_of_a_dotenv_sends_nothing_of_this_machine(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "account.json"
    with serve() as server:
        if content is not None:
            file.write_text(content.replace("URL", server.url))
        environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
        with pytest.raises(ModelError) as raised:
            await ask(cloud_spec(server, tmp_path, VERTEX, environment), environment)
    assert said in str(raised.value)
    assert not server.requests


@pytest.mark.parametrize("api", first_of(["messages", "chat"], 1))
async def test_a_token_that_ends_soon_is_fetched_again_and_each_is_a_secret(
    tmp_path: Path, private_key: str, api: str
) -> None:
    google = Google(20)
    secrets, endpoints = Secrets(), None
    with Server(lambda request: google(request) if request.path == "/token" else answer_for(api, "Hi.")) as server:
        environment = service_account(tmp_path, server, private_key)
        spec = cloud_spec(server, tmp_path, f'{VERTEX}\napi = "{api}"', environment)
        endpoints = Endpoints(secrets)
        for _ in range(2):
            await ask(spec, environment, endpoints)
        await endpoints.close()
    sent = [request.headers["authorization"] for request in server.requests if request.path != "/token"]
    assert len(set(sent)) == 2
    assert "planted" not in secrets.redact(" ".join(sent))


async def test_google_without_credentials_or_with_expired_ones_says_what_to_run(
    tmp_path: Path, private_key: str
) -> None:
    login = "run 'gcloud auth application-default login'"
    refusal = document({"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, 400)
    with Server(Google(1, refusal)) as server:
        nothing = cloud_spec(server, tmp_path, VERTEX, {})
        with pytest.raises(ModelError, match=f"no Google credentials were found: {login}"):
            await ask(nothing, {})
        environment = service_account(tmp_path, server, private_key)
        expired = cloud_spec(server, tmp_path, VERTEX, environment)
        with pytest.raises(ModelError, match=f"the Google credentials are expired or revoked: {login}") as raised:
            await ask(expired, environment)
        assert "PRIVATE KEY" not in str(raised.value)


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A token service for programs that run on Azure."""

    def token(request: Request) -> Answer:
        assert request.headers["x-identity-header"] == "h"
        return document({"access_token": "planted-entra-token", "expires_on": str(int(time.time()) + 3600)})

    with Server(token) as server:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{server.url}/token")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        yield server


@pytest.mark.parametrize(
    ("settings", "api", "scope"),
    [
        ("", "chat", "https://ai.azure.com"),
        ('api_version = "2025-04-01-preview"', "chat", "https://cognitiveservices.azure.com"),
        ('api = "messages"', "messages", "https://ai.azure.com"),
    ],
)
async def test_entra_gives_one_token_for_all(
    tmp_path: Path, entra: Server, settings: str, api: str, scope: str
) -> None:
    secrets = Secrets()
    with Server(says(api)) as server:
        await ask_at_once(cloud_spec(server, tmp_path, f"{AZURE}\n{settings}", {}), secrets, 5, {})
    (asked,) = entra.requests
    assert parse_qs(asked.path.partition("?")[2])["resource"] == [scope]
    for request in server.requests:
        assert request.headers["authorization"] == "Bearer planted-entra-token"
        assert "api-key" not in request.headers
    assert secrets.redact("planted-entra-token") == "$ENTRA_ACCESS_TOKEN"


async def test_without_an_identity_entra_says_what_to_run_and_nothing_else_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    with (
        serve() as server,
        pytest.raises(ModelError, match="Entra ID gave no token: run 'az login', or set AZURE_TEN"),
    ):
        await ask(cloud_spec(server, tmp_path, AZURE, {}), {})
    assert capfd.readouterr() == ("", "")


async def test_an_identity_that_may_not_is_told_its_role(tmp_path: Path, entra: Server) -> None:
    refusal = document({"error": {"message": "The principal lacks the required data action"}}, 401)
    said = "give it the role 'Cognitive Services OpenAI User'"
    with serve(refusal) as server, pytest.raises(ModelError, match=said):
        await ask(cloud_spec(server, tmp_path, AZURE, {}), {})
    assert len(entra.requests) == 1


@pytest.mark.parametrize(
    ("settings", "module", "package", "extra"),
    [
        (f'{SIGNED}\ncredentials = "default"', "boto3", "boto3", "bedrock"),
        (VERTEX, "google.auth", "google-auth", "vertex"),
        (AZURE, "azure.identity", "azure-identity", "azure"),
    ],
)
async def test_a_missing_extra_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, module: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    said = rf"m needs {package}, which is not installed: pip install 'toolcall-workbench\[{extra}\]'"
    with serve() as server:
        spec = cloud_spec(server, tmp_path, settings, AWS_KEYS)
        with pytest.raises(ModelError, match=said):
            await ask(spec, AWS_KEYS)
        checked = await Endpoints(Secrets()).check(spec, AWS_KEYS)
    assert not checked.ok
    assert package in checked.sentence


async def test_a_failure_counts_for_all_that_wait(tmp_path: Path) -> None:
    program = tmp_path / "keys.py"
    program.write_text(f"open({str(tmp_path / 'runs')!r}, 'a').write('.')\nexit(1)\n")
    profile(tmp_path, f"[profile work]\ncredential_process = {sys.executable} {program}\n")
    endpoints = Endpoints(Secrets())
    with serve() as server:
        spec = cloud_spec(server, tmp_path, f'{SIGNED}\nprofile = "work"', {})
        failed = await asyncio.gather(*(ask(spec, {}, endpoints) for _ in range(5)), return_exceptions=True)
    await endpoints.close()
    assert all(isinstance(each, ModelError) for each in failed)
    assert (tmp_path / "runs").read_text() == "."
