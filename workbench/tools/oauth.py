"""Logs in to servers over OAuth and renews their tokens, with the OAuth client of the MCP SDK."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from workbench.config.models import is_loopback
from workbench.config.secrets import Secrets
from workbench.limits import MAX_LOGIN_BYTES
from workbench.numerals import seconds_text
from workbench.tools.answer import clean_text
from workbench.tools.connection import first_line
from workbench.tools.login_file import LoginFile, LoginFileError, LoginSettings, StoredLogin
from workbench.tools.redirect import LoginError, RedirectAnswer
from workbench.tools.session import silence_sdk_logging

_logger = logging.getLogger(__name__)

_LAST_RENEWAL_S = 3.0

_LOGIN_ENDED_ERRORS = ("invalid_grant", "invalid_client", "unauthorized_client")
"""The errors of an authorization server that end a login (RFC 6749, section 5.2)."""

_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

# The SDK's provider is an `httpx2.Auth` that does everything within one request. It sends the request, gets a refusal,
# finds the authorization server, opens the login and sends the request again. Meanwhile it holds a lock, so parallel
# calls would wait for each other, and each could open a browser. Here, the login is a separate step that begins with a
# refused request. A connection only sends the tokens, and only their renewal holds a lock.


_FAILURES = (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError)
"""The errors of a flow. The SDK and pydantic raise ValueError for answers that violate OAuth."""


class LoginUser(Protocol):
    """The person who logs in.

    `redirect` is the address to which the authorization server sends the browser after the login."""

    redirect: str

    async def answer_to(self, address: str) -> RedirectAnswer:
        """Show the person an address of the authorization server, and return the server's answer.

        Raises LoginError if the answer is an error."""


class ServerLogin:
    """The login of a server, which all connections to the server share.

    `command` is the command that logs in. `timeout_s` limits one request, in seconds."""

    def __init__(
        self, server: str, settings: LoginSettings, file: LoginFile, secrets: Secrets, command: str, timeout_s: float
    ) -> None:
        self._server = server
        self._settings = settings
        self._file = file
        self._secrets = secrets
        self._command = command
        self._timeout_s = timeout_s
        self._login: StoredLogin | None = None
        self._renewing = asyncio.Lock()
        # The SDK's log lines about errors quote the answer, which may contain a token.
        silence_sdk_logging()

    async def token(self, refused_token: str | None = None) -> str:
        """Return a valid token. If necessary, it is renewed. `refused_token` is never returned.

        Raises LoginError if there is no valid token."""
        if (token := self._usable(refused_token)) is not None:
            return token
        async with self._renewing:
            if (token := self._usable(refused_token)) is not None:
                return token
            try:
                return await _finish_renewal(self._renewed(refused_token))
            except LoginError:
                # Tokens are renewed early. If the current token is still valid, it can be used, and the renewal can be
                # tried again later.
                login = self._login
                if login is None or login.access_token == refused_token or not login.is_valid(time.time()):
                    raise
                return login.access_token
            except LoginFileError as error:
                # With a client's own credentials, a new token can be requested at any time, even if the login cannot be
                # stored.
                if self._settings.auth != "client_credentials":
                    raise LoginError(f"cannot be logged in to: {error}") from error
                _logger.warning("%s", error)
                self._set_login(login := await self._authorized(_MachineProvider(self._settings)))
                return login.access_token

    async def log_in(self, person: LoginUser) -> None:
        """Let a person log in, and store the login.

        Raises LoginError."""
        try:
            provider = _PersonProvider(self._settings, person)
            login = await self._authorized(provider)
            async with self._file.locked():
                self._file.write(login)
        except LoginFileError as error:
            raise LoginError(f"granted a login that was not stored: {error}") from error

    def wants_login(self, reason: str = "") -> LoginError:
        """Return the error for a server that has no valid login.

        `reason` is added to the message. It is "" or begins with a space."""
        return LoginError(f"wants a login{reason}: run '{self._command}'")

    def _usable(self, refused_token: str | None) -> str | None:
        login = self._login
        if login is None or login.access_token == refused_token or not login.is_fresh(time.time()):
            return None
        return login.access_token

    async def _renewed(self, refused_token: str | None) -> str:
        # A refresh token works only once. If another process has renewed the login meanwhile, only its tokens are
        # valid.
        async with self._file.locked():
            self._set_login(self._file.read())
            if (token := self._usable(refused_token)) is not None:
                return token
            if self._settings.auth == "client_credentials":
                login = await self._authorized(_MachineProvider(self._settings))
            else:
                login = await self._refreshed(refused_token)
            self._set_login(login)
            self._file.write(login)
        return login.access_token

    def _set_login(self, login: StoredLogin | None) -> None:
        self._login = login
        if login is not None:
            login.register_secrets(self._server, self._secrets)

    async def _refreshed(self, refused_token: str | None) -> StoredLogin:
        login = self._login
        if login is None:
            raise self.wants_login()
        if not login.can_be_renewed or login.client is None:
            raise self.wants_login(
                " (the last one has expired)" if refused_token is None else " (it refused the last one)"
            )
        provider = _PersonProvider(self._settings)
        try:
            _resume(provider, login, self._settings)
        except ValidationError:
            raise self.wants_login(" (the last one was not stored completely)") from None
        requests = _Requests(self._settings.url, self._timeout_s, self._secrets)
        try:
            await requests.drive(provider)
            tokens = provider.context.current_tokens
            if tokens is not None:
                return _stored(provider, self._settings)
        except _FAILURES as error:
            raise LoginError(f"cannot renew its login: {requests.reason(error)}") from error
        if requests.error_code() in _LOGIN_ENDED_ERRORS:
            self._login = None
            self._file.delete()
            raise self.wants_login(" (the last one has ended)")
        raise LoginError(f"cannot renew its login: {requests.last_refusal()}")

    async def _authorized(self, provider: _PersonProvider | _MachineProvider) -> StoredLogin:
        requests = _Requests(self._settings.url, self._timeout_s, self._secrets)
        try:
            await requests.drive(provider, await requests.refusal(self._settings.scope))
        except _FAILURES as error:
            raise LoginError(f"cannot be logged in to: {requests.authorization_problem(error, provider)}") from error
        login = _stored(provider, self._settings)
        login.register_secrets(self._server, self._secrets)
        return login


async def _finish_renewal(renewal: Coroutine[Any, Any, str]) -> str:
    """Await the renewal of a token. If the caller is cancelled, the renewal gets some more time to end.

    A refresh token works only once. If the renewal were cancelled after the request, the login would be lost."""
    task = asyncio.create_task(renewal)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_LAST_RENEWAL_S)
        task.cancel()
        raise


class LoginAuth(httpx2.Auth):
    """Sends the token of a login with each request.

    If a request is refused, it is sent once more with a new token. If that is refused too, `on_refusal` is called with
    the reason."""

    def __init__(self, login: ServerLogin, on_refusal: Callable[[httpx2.Response, str], object]) -> None:
        self._login = login
        self._on_refusal = on_refusal

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        # An exception here would end the SDK's transport without giving a reason. So the request is sent without a
        # token, and the server refuses it.
        why, token = "", None
        try:
            token = await self._login.token()
            request.headers["Authorization"] = f"Bearer {token}"
        except LoginError as error:
            why = str(error)
        response = yield request
        if response.status_code == 401 and token is not None:
            try:
                request.headers["Authorization"] = f"Bearer {await self._login.token(token)}"
                response = yield request
                why = str(self._login.wants_login(" (it refused a new token)"))
            except LoginError as error:
                why = str(error)
        if response.status_code == 401:
            self._on_refusal(response, why)


def wanted_scope(response: httpx2.Response) -> str | None:
    """Return the scope that a server requires and the token lacks. Return `None` if the refusal has another reason."""
    if extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return None
    return extract_scope_from_www_auth(response)


class _Provider(Protocol):
    context: Any

    def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]: ...


class _NoStorage:
    """A token storage for the SDK that stores nothing, because Workbench stores logins itself."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


class _PersonProvider(OAuthClientProvider):
    """Logs in a person. If the settings name an issuer, only that authorization server is used."""

    def __init__(self, settings: LoginSettings, person: LoginUser | None = None) -> None:
        redirects = [AnyUrl("http://127.0.0.1/callback" if person is None else person.redirect)]
        metadata = OAuthClientMetadata(
            client_name="Toolcall Workbench",
            redirect_uris=redirects,
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
            scope=settings.scope,
        )
        super().__init__(settings.url, metadata, _NoStorage(), self._show, self._answered)
        self._settings = settings
        self._person = person
        self._answer: RedirectAnswer | None = None
        self._initialized = True  # nothing is stored, so there is nothing to initialize from
        self.context.auth_server_url = settings.issuer
        if settings.client_id is not None:
            self.context.client_info = OAuthClientInformationFull(
                client_id=settings.client_id,
                client_secret=settings.client_secret,
                redirect_uris=redirects,
                token_endpoint_auth_method="none" if settings.client_secret is None else "client_secret_basic",
                scope=settings.scope,
                issuer=settings.issuer,
            )

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return _at_issuer(advertised, self._settings.issuer)

    async def _perform_authorization(self) -> httpx2.Request:
        # Without the metadata of the issuer, the SDK would send codes and secrets to the MCP server.
        if self.context.oauth_metadata is None and self._settings.issuer is not None:
            raise OAuthFlowError(_no_metadata(self._settings.issuer))
        _choose_method(self)
        return await super()._perform_authorization()

    async def _show(self, address: str) -> None:
        assert self._person is not None
        self._answer = await self._person.answer_to(address)

    async def _answered(self) -> AuthorizationCodeResult:
        answer = self._answer
        assert answer is not None
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.iss)


class _MachineProvider(ClientCredentialsOAuthProvider):
    """Logs in with the id and the secret of a client, at the issuer in the settings only."""

    def __init__(self, settings: LoginSettings) -> None:
        assert settings.client_id is not None and settings.client_secret is not None
        super().__init__(
            settings.url,
            _NoStorage(),
            settings.client_id,
            settings.client_secret,
            scope=settings.scope,
            issuer=settings.issuer,
        )
        self._settings = settings
        self.context.auth_server_url = settings.issuer

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return _at_issuer(advertised, self._settings.issuer)

    async def _perform_authorization(self) -> httpx2.Request:
        _choose_method(self)
        return await super()._perform_authorization()


def _at_issuer(advertised: list[str], issuer: str | None) -> str:
    """Choose one of the authorization servers that the server advertises.

    Raises OAuthFlowError if the suite names an issuer that is not among them."""
    if issuer is None:
        return advertised[0]
    for each in advertised:
        if issuers_match(each, issuer):
            return each
    raise OAuthFlowError(
        f"the server names the authorization server {advertised[0]}, but the suite has issuer = {issuer!r}"
    )


def _no_metadata(issuer: str) -> str:
    return f"the authorization server {issuer} does not describe itself: check issuer"


def _choose_method(provider: OAuthClientProvider) -> None:
    client, metadata = provider.context.client_info, provider.context.oauth_metadata
    if client is None or metadata is None or client.token_endpoint_auth_method != "client_secret_basic":
        return
    methods = metadata.token_endpoint_auth_methods_supported or ()
    if "client_secret_post" in methods and "client_secret_basic" not in methods:
        client.token_endpoint_auth_method = "client_secret_post"


def _is_basic(request: httpx2.Request) -> bool:
    return request.headers.get("authorization", "").startswith("Basic ")


def _with_secret_in_form(request: httpx2.Request) -> httpx2.Request:
    """Return a token request with the client's id and secret in its form instead of its header.

    For a client that was registered by hand, only the authorization server knows which of the two it accepts."""
    credentials = base64.b64decode(request.headers["authorization"].partition(" ")[2]).decode()
    client_id, _, secret = credentials.partition(":")
    form = dict(parse_qsl(request.content.decode()))
    form |= {"client_id": unquote(client_id), "client_secret": unquote(secret)}
    return httpx2.Request("POST", request.url, data=form)


class _Requests:
    """Sends the requests of one login flow, and finds out why it failed."""

    def __init__(self, url: str, timeout_s: float, secrets: Secrets) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._secrets = secrets
        self._sent: httpx2.Request | None = None
        self._answer: httpx2.Response | None = None
        self._asks = True
        """Whether the server itself asked for a login."""

    async def refusal(self, scope: str | None) -> httpx2.Response:
        async with await _client() as client, asyncio.timeout(self._timeout_s):
            response = await self._ping(client, "POST")
            # A server that uses server-sent events takes no POST here. It sends the address for messages first.
            if response.status_code == 405:
                response = await self._ping(client, "GET")
        if response.status_code == 404:
            raise OAuthFlowError(f"{_public_url(self._url)} answers with 404 Not Found: check the path of its address")
        self._asks = response.status_code == 401
        words = []
        wanted = scope or extract_scope_from_www_auth(response)
        if wanted is not None:
            words.append(f'scope="{wanted}"')
        metadata = extract_resource_metadata_from_www_auth(response)
        if metadata is not None:
            words.append(f'resource_metadata="{metadata}"')
        # The flow must begin with a refusal, but the user may log in before the server has refused anything.
        return httpx2.Response(401, headers={"WWW-Authenticate": f"Bearer {', '.join(words)}"})

    async def _ping(self, client: httpx2.AsyncClient, method: str) -> httpx2.Response:
        headers, document = {"Accept": "application/json, text/event-stream"}, None
        if method == "POST":
            document = _PING
        self._sent = client.build_request(method, self._url, json=document, headers=headers)
        response = await client.send(self._sent, stream=True)
        # Only status and headers are needed, and the body of an event stream would not end.
        await response.aclose()
        return response

    async def drive(self, provider: _Provider, refusal: httpx2.Response | None = None) -> None:
        """Send the requests of a provider's login flow until it has tokens.

        The flow begins with `refusal`, a response by which the server refused a request. Without it, the flow can only
        refresh tokens."""
        request = httpx2.Request("POST", self._url)
        async with await _client() as client, aclosing(provider.async_auth_flow(request)) as flow:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    answer = await self._send(client, outgoing)
                    if self.error_code() == "invalid_client" and _is_basic(outgoing):
                        answer = await self._send(client, _with_secret_in_form(outgoing))
                elif refusal is not None:
                    answer, refusal = refusal, None
                    answer.request = request
                else:
                    return
                outgoing = await flow.asend(answer)

    async def _send(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        self._sent, self._answer = request, None
        url = str(request.url)
        is_safe = request.url.scheme == "https" or is_loopback(url)
        if not is_safe and _origin(url) != _origin(self._url):
            raise OAuthFlowError(f"the login leads to {_public_url(url)}, which has no TLS, so nothing was sent there")
        body = bytearray()
        async with asyncio.timeout(self._timeout_s):
            response = await client.send(request, stream=True)
            try:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_LOGIN_BYTES:
                        raise OAuthFlowError(f"{_public_url(url)} {MAX_LOGIN_BYTES.exceeded()}")
            finally:
                await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_BODY]
        self._answer = httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)
        return self._answer

    def reason(self, error: Exception) -> str:
        where = self._url
        if self._sent is not None:
            where = _public_url(str(self._sent.url))
        if isinstance(error, TimeoutError):
            return f"{where} does not answer within {seconds_text(self._timeout_s)}"
        if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
            return f"{where} cannot be reached ({self._clean(first_line(error))})"
        refused = self._answer is not None and self._answer.status_code >= 400
        if isinstance(error, OAuthTokenError | OAuthRegistrationError) and refused:
            return self.last_refusal()
        # The SDK's texts for these errors quote the answer, which may contain a token.
        if isinstance(error, OAuthTokenError | OAuthRegistrationError | ValueError):
            return f"{where} does not answer as OAuth requires: check its address, or ask its operator"
        text = self._clean(first_line(error))
        for beginning, way_out in _WAYS_OUT.items():
            if text.startswith(beginning):
                return f"{text}: {way_out}"
        return text

    def authorization_problem(self, error: Exception, provider: OAuthClientProvider) -> str:
        known = provider.context.oauth_metadata is not None
        if not known and not self._asks:
            return "the server does not ask for a login: remove auth, or check the server's address"
        refused = self._answer is not None and self._answer.status_code >= 400
        if isinstance(error, OAuthRegistrationError) and refused:
            if not known:
                return (
                    "the server does not say where to log in: check the server's address, or put a token into headers"
                )
            return (
                f"{self.last_refusal()}, so clients cannot register themselves: register a client by hand, with the "
                f"redirect address {_redirect_of(provider)}, and write its client_id into the suite, with its "
                "client_secret and the issuer if it has a secret"
            )
        if self.error_code() in _LOGIN_ENDED_ERRORS:
            return f"{self.last_refusal()}: check client_id and client_secret"
        return self.reason(error)

    def error_code(self) -> str | None:
        value = self._error().get("error")
        return value if isinstance(value, str) else None

    def last_refusal(self) -> str:
        answer = self._answer
        assert answer is not None and self._sent is not None
        text = f"{_public_url(str(self._sent.url))} answers with {answer.status_code} {answer.reason_phrase}".rstrip()
        error = self._error()
        reason = error.get("error_description") or error.get("error")
        if isinstance(reason, str):
            text += f" ({self._clean(first_line(ValueError(reason)))})"
        return text

    def _error(self) -> Mapping[str, object]:
        if self._answer is None:
            return {}
        try:
            document = json.loads(self._answer.content)
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def _clean(self, text: str) -> str:
        return self._secrets.redact(clean_text(text))


_WAYS_OUT = {
    "Protected resource metadata": "try again later",
    "Protected resource ": "check the address of the server",
    "Authorization server metadata issuer mismatch": "the operator of the server has to correct this",
    "Authorization response ": "the operator of the authorization server has to correct this",
}
"""Advice on errors of the SDK by their beginnings. The first match counts."""

_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that describe a body as sent, and do not fit the decoded body."""

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


async def _client() -> httpx2.AsyncClient:
    """Return an HTTP client. For addresses of this machine, it ignores the proxies in the environment."""

    def made() -> httpx2.AsyncClient:
        mounts = {f"all://{host}": None for host in _LOCAL_HOSTS}
        return httpx2.AsyncClient(headers={"Accept-Encoding": "identity"}, timeout=None, mounts=mounts)

    # Reading the certificates of this machine is slow, so a thread does it.
    return await asyncio.to_thread(made)


def _resume(provider: OAuthClientProvider, login: StoredLogin, settings: LoginSettings) -> None:
    """Prepare a provider to refresh the expired token of a stored login.

    Raises ValidationError if the stored login lacks necessary data."""
    context = provider.context
    context.current_tokens = OAuthToken.model_validate(login.tokens)
    context.token_expiry_time = 1.0
    if settings.client_id is None:
        context.client_info = OAuthClientInformationFull.model_validate(login.client)
    context.auth_server_url = login.authorization_server
    # Without metadata, the SDK would send the refresh token to the MCP server.
    if login.authorization_metadata is not None:
        context.oauth_metadata = OAuthMetadata.model_validate(login.authorization_metadata)
    if login.resource_metadata is not None:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.resource_metadata)
    _choose_method(provider)


def _stored(provider: OAuthClientProvider, settings: LoginSettings) -> StoredLogin:
    context = provider.context
    assert context.current_tokens is not None
    client = context.client_info
    # The secret of the suite's client is not stored, because the suite names the variable that has it.
    if client is not None and settings.client_secret is not None:
        client = client.model_copy(update={"client_secret": None})
    return StoredLogin(
        url=settings.url,
        tokens=_document(context.current_tokens) or {},
        expires_at=context.token_expiry_time,
        client=_document(client),
        authorization_server=context.auth_server_url,
        authorization_metadata=_document(context.oauth_metadata),
        resource_metadata=_document(context.protected_resource_metadata),
    )


def _document(model: BaseModel | None) -> dict[str, Any] | None:
    if model is None:
        return None
    return model.model_dump(mode="json", exclude_none=True)


def _redirect_of(provider: OAuthClientProvider) -> str:
    redirects = provider.context.client_metadata.redirect_uris
    assert redirects is not None
    return str(redirects[0])


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _public_url(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
