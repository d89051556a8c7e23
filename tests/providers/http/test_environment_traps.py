"""Variables that the vendors' SDKs would read, and those of them that reach an endpoint: real requests, real
variables."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from tests.providers.http.asking import ask, text_of
from tests.providers.server import APIS, Api, Server, base_url_of, document, error_document, said, serve
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.clients import Clients, RequestAccess
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.http.errors import EndpointErrors
from workbench.providers.model import ModelError

PLANTED = "planted-0123456789"
TRAPS = {
    "OPENAI_API_KEY": PLANTED,
    "OPENAI_ADMIN_KEY": PLANTED,
    "OPENAI_ORG_ID": PLANTED,
    "OPENAI_PROJECT_ID": PLANTED,
    "OPENAI_CUSTOM_HEADERS": f"X-Mine: {PLANTED}\nAuthorization: Bearer {PLANTED}\nUser-Agent: {PLANTED}",
    "OPENAI_BASE_URL": f"http://127.0.0.1:1/{PLANTED}",
    "OPENAI_LOG": "debug",
    "ANTHROPIC_API_KEY": PLANTED,
    "ANTHROPIC_AUTH_TOKEN": PLANTED,
    "ANTHROPIC_CUSTOM_HEADERS": f"x-mine: {PLANTED}\nanthropic-version: {PLANTED}\nAUTHORIZATION: {PLANTED}",
    "ANTHROPIC_BASE_URL": f"http://127.0.0.1:1/{PLANTED}",
    "ANTHROPIC_LOG": "debug",
}


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    found: Api = request.param
    return found


@pytest.fixture
def traps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in TRAPS.items():
        monkeypatch.setenv(name, value)
    configs = tmp_path / "configs"
    configs.mkdir()
    (configs / "mine.json").write_text(
        f'{{"base_url": "http://127.0.0.1:1/{PLANTED}", "authentication": {{"type": "user_oauth"}}}}'
    )
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_PROFILE", "mine")


def spec_of(server: Server, api: Api, key: str | None = None, *, legacy_auth: bool = False) -> ModelSpec:
    return ModelSpec("m", api, "test-model", base_url_of(server, api), key, legacy_auth=legacy_auth)


@pytest.mark.usefixtures("traps")
async def test_nothing_of_the_environment_reaches_an_endpoint_that_is_not_the_vendors(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(said(api, "Hi")) as server:
        await ask(spec_of(server, api))
    (request,) = server.requests
    assert PLANTED not in str(request)
    assert "authorization" not in request.headers
    assert not [name for name in request.headers if "stainless" in name or name.startswith("openai-")]
    assert "Hi" not in caplog.text
    assert "messages" not in caplog.text


@pytest.mark.usefixtures("traps")
async def test_the_key_that_a_model_names_goes_out_and_no_other(api: Api) -> None:
    with serve(said(api, "Hi")) as server:
        await ask(spec_of(server, api, "MY_KEY"), {"MY_KEY": "sk-of-mine"})
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer sk-of-mine"
    assert PLANTED not in str(request)


@pytest.mark.usefixtures("traps")
async def test_older_gateways_get_the_key_and_the_version_as_they_want_them() -> None:
    with serve(said("anthropic", "Hi")) as server:
        await ask(spec_of(server, "anthropic", "MY_KEY", legacy_auth=True), {"MY_KEY": "sk-of-mine"})
    headers = server.requests[0].headers
    assert headers["x-api-key"] == "sk-of-mine"
    assert headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in headers


@pytest.mark.parametrize(
    ("provider", "base_url", "leaves"),
    [
        ("openai", "https://api.openai.com/v1", {"openai-organization", "openai-project", "x-mine"}),
        ("openai-responses", "https://api.openai.com/v1", {"openai-organization", "openai-project", "x-mine"}),
        ("openai", "https://api.openai.com.example/v1", set[str]()),
        ("anthropic", "https://api.anthropic.com", {"x-mine"}),
        ("anthropic", "https://api.anthropic.com.example", set[str]()),
    ],
)
@pytest.mark.usefixtures("traps")
async def test_the_vendor_alone_gets_the_headers_that_the_environment_asks_for(
    provider: Api, base_url: str, leaves: set[str]
) -> None:
    spec = ModelSpec("m", provider, "gpt", base_url)
    clients = Clients()
    client = await clients.client(spec, RequestAccess("sk-of-mine"), EndpointErrors(spec, Secrets()))
    headers = client.session.headers
    assert str(client.base_url) == base_url
    assert {name.lower() for name, value in headers.items() if value == PLANTED} == leaves
    assert headers["authorization"] == "Bearer sk-of-mine"
    assert headers["user-agent"].startswith("toolcall-workbench/")
    await clients.close()


async def test_a_header_that_cannot_be_sent_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "mine\r\nX-Other: 1")
    with pytest.raises(ModelError, match="the header openai-organization contains characters that no header can have"):
        await ask(ModelSpec("m", "openai", "gpt", "https://api.openai.com/v1"))


async def test_a_machines_own_server_is_asked_without_a_proxy(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as proxy, serve(said(api, "Hi")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        await ask(spec_of(server, api))
        assert (len(proxy.requests), len(server.requests)) == (0, 1)


async def test_others_are_asked_through_the_proxy_that_the_environment_names(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(said(api, "Hi")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        await ask(ModelSpec("m", api, "test-model", "http://models.test/v1"))
    assert proxy.requests[0].path.startswith("http://models.test/v1/")


@pytest.mark.parametrize("no_proxy", ["models.test", "other.test, .models.test", "*"])
async def test_no_proxy_names_the_hosts_that_are_asked_without_one(
    no_proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", no_proxy)
    with pytest.raises(ModelError, match=r"models\.test/v1 has an unknown host name"):
        await ask(ModelSpec("m", "openai", "test-model", "http://api.models.test/v1"))


async def test_a_proxy_passes_on_what_is_encrypted_from_end_to_end(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, asked = trustme.CA(), []
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)
        target.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0])
        there, back = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("models.test").configure_cert(tls)
    with serve(said(api, "Hi"), tls=tls) as server:
        async with await asyncio.start_server(tunnel, "127.0.0.1", 0) as proxy:
            monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
            spec = replace(spec_of(server, api), base_url=base_url_of(server, api).replace("127.0.0.1", "models.test"))
            assert text_of(await ask(spec)) == "Hi"
    assert asked == [f"CONNECT models.test:{server.port} HTTP/1.1".encode()]


@pytest.mark.parametrize("proxy", ["nonsense://x", "socks5://me:planted@127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_told_with_the_way_out(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ModelError, match=r"http://models.test/v1 cannot be reached: .*check .*proxy") as raised:
        await ask(ModelSpec("m", "openai", "test-model", "http://models.test/v1"))
    assert "planted" not in str(raised.value)


async def test_a_proxy_gets_its_password_and_its_refusal_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(document({"error": "who?"}, 407)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("http://", "http://me:planted@"))
        with pytest.raises(ModelError) as raised:
            await ask(ModelSpec("m", "openai", "test-model", "https://models.test/v1"))
    assert proxy.requests[0].method == "CONNECT"
    assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")
    assert "its proxy 127.0.0.1:" in str(raised.value)
    assert "refuses to forward the request (407 " in str(raised.value)
    assert "planted" not in str(raised.value)


@pytest.mark.parametrize("value", [None, "", "   "])
def test_a_key_that_is_not_set_is_told_before_anything_is_sent(value: str | None) -> None:
    spec = ModelSpec("mine", "openai", "test-model", "http://127.0.0.1:1/v1", "MY_KEY")
    with pytest.raises(ModelError, match=r"mine needs a key, and MY_KEY is (not set|empty): .*\.env"):
        Endpoints(Secrets()).open(spec, {} if value is None else {"MY_KEY": value})


def test_a_key_that_no_header_can_carry_is_told_without_its_value() -> None:
    spec = ModelSpec("mine", "openai", "test-model", "http://127.0.0.1:1/v1", "MY_KEY")
    with pytest.raises(ModelError, match="MY_KEY contains characters that a key cannot have") as raised:
        Endpoints(Secrets()).open(spec, {"MY_KEY": "sk-first\nsk-second"})
    assert "sk-" not in str(raised.value)


async def test_a_key_that_an_endpoint_repeats_is_shown_by_its_name() -> None:
    wrong = document(error_document("openai", "Incorrect API key provided: sk-of-mine-0123456789."), 401)
    with serve(wrong) as server, pytest.raises(ModelError) as raised:
        await ask(spec_of(server, "openai", "MY_KEY"), {"MY_KEY": "sk-of-mine-0123456789"})
    assert "does not accept the key in MY_KEY (401: Incorrect API key provided: $MY_KEY.)" in str(raised.value)
