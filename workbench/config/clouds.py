"""Models at Azure OpenAI, Amazon Bedrock and Google Vertex: their settings, their addresses, and their credentials.

This module sends nothing and imports no SDK. The user must first see the address of a model and the source of its
credentials, and approve them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar, get_args
from urllib.parse import urlsplit

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

Cloud = Literal["azure", "bedrock", "vertex"]
CLOUDS: tuple[Cloud, ...] = get_args(Cloud)

Api = Literal["chat", "responses", "messages"]
"""A wire format: OpenAI's Chat Completions or Responses, or Anthropic's Messages."""

APIS: tuple[Api, ...] = get_args(Api)

APIS_OF: Mapping[Cloud, tuple[Api, ...]] = {
    "azure": ("chat", "responses", "messages"),
    "bedrock": ("messages", "chat", "responses"),
    "vertex": ("messages", "chat"),
}
"""The APIs of each cloud, the default first."""

BedrockEndpoint = Literal["runtime", "mantle"]
BEDROCK_ENDPOINTS: tuple[BedrockEndpoint, ...] = get_args(BedrockEndpoint)

CredentialChoice = Literal["default"]
"""The possible values of `credentials`: with `default`, the cloud's own SDK finds the credentials on this machine."""

SETTINGS_OF: Mapping[Cloud, tuple[str, ...]] = {
    "azure": ("api", "resource", "api_version", "credentials"),
    "bedrock": ("api", "region", "profile", "endpoint", "credentials"),
    "vertex": ("api", "region", "project", "credentials"),
}
"""The settings of models at each cloud, in addition to the settings of all models."""

CLOUD_TITLES: Mapping[Cloud, str] = {"azure": "Azure", "bedrock": "Amazon Bedrock", "vertex": "Google Vertex"}

V1 = "v1"
"""The version of Azure's API whose addresses have no `api-version`."""


@dataclass(frozen=True)
class CloudSettings:
    """The settings of a model at a cloud, as written in `workbench.toml`.

    A setting that is `None` is read from the environment."""

    api: Api
    resource: str | None = None
    api_version: str = V1
    region: str | None = None
    project: str | None = None
    profile: str | None = None
    endpoint: BedrockEndpoint = "runtime"
    credentials: CredentialChoice | None = None


SourceKind = Literal[
    "key", "AWS keys", "AWS profile", "AWS default", "Google file", "Google default", "Entra secret", "Entra default"
]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the credentials of a model come from.

    `text` describes the source in messages. It is empty if one variable holds the key. `variables` are the environment
    variables that the cloud's SDK reads."""

    kind: SourceKind
    text: str = ""
    variables: tuple[str, ...] = ()
    profile: str | None = None

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables whose values are secret."""
        return tuple(name for name in self.variables if name in _SECRET)


KEY = Source("key")


@dataclass(frozen=True)
class CloudPlace:
    """The address and credentials of a model at a cloud, found from its settings and the environment.

    `key_variable` is the variable that holds the key, or `None` if the credentials come from another `source`. An
    empty `project` means the project of the credentials. `written_url` and `written_key` are the values in the
    settings, which may differ from the values in use. `problem` says why the model cannot be used, as the end of a
    sentence that begins with the model's name."""

    base_url: str = ""
    region: str = ""
    project: str = ""
    key_variable: str | None = None
    source: Source = KEY
    problem: str = ""
    written_url: str = ""
    written_key: str | None = None


_LABEL = late_pattern(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_AWS_REGION = late_pattern(r"[a-z]{2,8}(-[a-z0-9]+)+-\d{1,2}")
_API_VERSION = late_pattern(r"v1|\d{4}-\d{2}-\d{2}(-preview)?")

_OTHER_PARTITION_PREFIXES = ("cn-", "eusc-", "us-iso", "eu-iso")
"""Prefixes of AWS regions whose hosts have other domains."""


def checked_label(text: str) -> str:
    """Return `text` unchanged if it is a valid name of a region, a resource or a project.

    Raise ValueError for any other text, which could change the host or the path of an address."""
    # The SDKs put these names into addresses unchanged. A region `evil.example/#` would send the credentials there.
    if not _LABEL.fullmatch(text):
        raise ValueError("may contain only the letters a to z, digits and '-', since it becomes part of the address")
    return text


def checked_aws_region(text: str) -> str:
    """Return `text` unchanged if it is the name of an AWS region. Raise ValueError for any other text."""
    if not _AWS_REGION.fullmatch(text):
        raise ValueError("must be a region of AWS, such as us-east-1")
    return text


def checked_api_version(text: str) -> str:
    """Return `text` unchanged if it is a version of Azure's API: `v1` or a date. Raise ValueError otherwise."""
    if not _API_VERSION.fullmatch(text):
        raise ValueError("must be 'v1' or a date such as 2025-04-01-preview")
    return text


def checked_profile(text: str) -> str:
    """Return `text` unchanged if it can be the name of an AWS profile. Raise ValueError otherwise."""
    if not text or not text.isprintable() or text != text.strip() or "]" in text:
        raise ValueError("must be the name of a profile of the AWS configuration")
    return text


def default_api(cloud: Cloud, model: str) -> Api:
    """Return the API for a model whose settings name no API."""
    # Claude models use the Messages API at every cloud. Other models are named PUBLISHER/MODEL at Vertex, and OpenAI's
    # models are named openai.MODEL at Bedrock.
    if cloud == "vertex" and "/" in model:
        return "chat"
    if cloud == "bedrock" and model.startswith("openai."):
        return "chat"
    return APIS_OF[cloud][0]


_BEDROCK_HOST = late_pattern(
    r"([a-z0-9-]+\.)?bedrock-(?P<endpoint>runtime|mantle)(-fips)?\.(?P<region>[a-z0-9-]+)"
    r"\.(amazonaws\.com|vpce\.amazonaws\.com|api\.aws|amazonaws\.com\.cn|amazonaws\.eu)"
)
_AZURE_HOST = late_pattern(
    r"[a-z0-9-]+\.(openai\.azure\.(com|us|cn)|(cognitiveservices|services\.ai)\.azure\.(com|us|cn))"
)
_VERTEX_HOST = late_pattern(
    r"((?P<region>[a-z0-9-]+)-)?aiplatform\.googleapis\.com|aiplatform\.(?P<area>us|eu)\.rep\.googleapis\.com"
)


def is_own_address(cloud: Cloud, url: str) -> bool:
    """Return whether an address belongs to a cloud's own hosts.

    Only these hosts may receive the credentials that the cloud's SDK finds on this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https":
        return False
    # A check of the domain is not enough, because customers have hosts of their own below amazonaws.com or azure.com.
    if cloud == "azure":
        return _AZURE_HOST.fullmatch(host) is not None
    if cloud == "bedrock":
        return _BEDROCK_HOST.fullmatch(host) is not None
    return _VERTEX_HOST.fullmatch(host) is not None


class _LocationError(Exception):
    """The reason why the address or the credentials of a model at a cloud cannot be found."""


_COMMAND_KEY = " "
"""Takes the place of the variable's name if a command prints the key."""


def place_of(
    cloud: Cloud,
    settings: CloudSettings,
    written_url: str,
    written_key: str | None,
    environment: Mapping[str, str],
    *,
    has_command: bool = False,
) -> CloudPlace:
    """Find the address and the credentials of a model at a cloud.

    `written_url` is the address in the model's settings. It is empty if the settings name no address. `written_key` is
    the variable that holds its key. `has_command` is true if a command prints the key."""
    given = {name: value.strip() for name, value in environment.items() if name in _VARIABLES and value.strip()}
    key = written_key
    if has_command:
        key = _COMMAND_KEY
    try:
        for name in ("profile", "credentials"):
            if key is not None and getattr(settings, name) is not None:
                raise _LocationError(f"has both a key and {name}: omit one")
        if cloud == "azure":
            place = _azure(settings, written_url, key, given)
        elif cloud == "bedrock":
            place = _bedrock(settings, written_url, key, given)
        else:
            place = _vertex(settings, written_url, key, given)
    except _LocationError as error:
        place = CloudPlace(written_url, key_variable=key, problem=str(error))
    if place.key_variable == _COMMAND_KEY:
        place = replace(place, key_variable=None)
    return place


def place_refusal(
    place: CloudPlace, settings: CloudSettings, environment: Mapping[str, str], process_variables: Mapping[str, str]
) -> str:
    """Return a message if a `.env` names the resource to which the user's own credentials would be sent, otherwise "".

    Call this only for models that need no approval. `process_variables` holds the variables of the process.
    `environment` holds these and the variables of the `.env` beside the suite."""
    # A `.env` may name a resource for the keys in the same file, but not for the user's own keys.
    if place.written_url or settings.resource:
        return ""
    name = _FOUNDRY_RESOURCE if settings.api == "messages" else _AZURE_ENDPOINT
    if name in process_variables or name not in environment:
        return ""
    credentials = (place.key_variable,) if place.key_variable else place.source.variables
    if credentials and not any(variable in process_variables for variable in credentials):
        return ""
    return (
        f"would send your own credentials to the resource that {name} names in a .env: set {name} in your shell, or"
        " write resource into workbench.toml"
    )


_AZURE_KEYS: Mapping[Api, tuple[str, ...]] = {
    "chat": ("AZURE_OPENAI_API_KEY",),
    "responses": ("AZURE_OPENAI_API_KEY",),
    "messages": ("ANTHROPIC_FOUNDRY_API_KEY", "AZURE_OPENAI_API_KEY"),
}
_ENTRA = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
_AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_SECRET = frozenset((*_AWS_KEYS, "AZURE_CLIENT_SECRET"))
_BEDROCK_KEY = "AWS_BEARER_TOKEN_BEDROCK"
_GOOGLE_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AWS_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_VERTEX_REGIONS = ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
_VERTEX_PROJECTS = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
_AZURE_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
_FOUNDRY_RESOURCE = "ANTHROPIC_FOUNDRY_RESOURCE"

_VARIABLES = frozenset(
    (
        *("AZURE_OPENAI_API_KEY", "ANTHROPIC_FOUNDRY_API_KEY", _AZURE_ENDPOINT, _FOUNDRY_RESOURCE, *_ENTRA),
        *(_BEDROCK_KEY, *_AWS_KEYS, *_AWS_REGIONS, *_AWS_PROFILES),
        *(_GOOGLE_FILE, *_VERTEX_REGIONS, *_VERTEX_PROJECTS),
    )
)
"""The variables that complete a model's settings, without variables that redirect the SDKs."""


def _azure(settings: CloudSettings, url: str, key: str | None, variables: Mapping[str, str]) -> CloudPlace:
    if url and settings.resource:
        raise _LocationError("has both resource and base_url: omit one")
    root = url or _azure_root(settings, variables)
    if not urlsplit(root).path:
        root += _azure_path(settings)
    if settings.api != "messages" and settings.api_version != V1 and urlsplit(root).path.endswith("/v1"):
        raise _LocationError(
            f"has api_version {settings.api_version}, and base_url is an address of the v1 API: omit one"
        )
    if key is None and settings.credentials is None:
        _must_be_own("azure", root, "api_key_env")
        key = next((name for name in _AZURE_KEYS[settings.api] if name in variables), None)
    if key is not None:
        return CloudPlace(root, key_variable=key)
    if all(name in variables for name in _ENTRA):
        return CloudPlace(root, source=Source("Entra secret", f"the Entra ID application in {_ENTRA[1]}", _ENTRA))
    return CloudPlace(root, source=Source("Entra default", "Entra ID, for which the program az may be started"))


def _azure_root(settings: CloudSettings, variables: Mapping[str, str]) -> str:
    of_claude = settings.api == "messages"
    if settings.resource:
        domain = "services.ai.azure.com" if of_claude else "openai.azure.com"
        return f"https://{settings.resource}.{domain}"
    if of_claude and (resource := variables.get(_FOUNDRY_RESOURCE)):
        return f"https://{_label_of(_FOUNDRY_RESOURCE, resource)}.services.ai.azure.com"
    if not of_claude and (endpoint := variables.get(_AZURE_ENDPOINT)):
        root = endpoint.rstrip("/")
        if not is_own_address("azure", root) or urlsplit(root).path or "?" in root or "#" in root or "@" in root:
            raise _LocationError(
                f"would be asked at the address in {_AZURE_ENDPOINT}, which is not https://RESOURCE.openai.azure.com:"
                " write it as base_url into workbench.toml"
            )
        return root
    variable = _FOUNDRY_RESOURCE if of_claude else _AZURE_ENDPOINT
    raise _LocationError(f'has no address: write resource = "NAME" or base_url into workbench.toml, or set {variable}')


def _azure_path(settings: CloudSettings) -> str:
    if settings.api == "messages":
        return "/anthropic"
    if settings.api_version == V1:
        return "/openai/v1"
    return "/openai"


def _bedrock(settings: CloudSettings, url: str, key: str | None, variables: Mapping[str, str]) -> CloudPlace:
    if url and (found := _BEDROCK_HOST.fullmatch(urlsplit(url).hostname or "")):
        if found["endpoint"] != settings.endpoint:
            raise _LocationError(f'has the base_url of another endpoint: write endpoint = "{found["endpoint"]}"')
        if settings.region not in (None, found["region"]):
            raise _LocationError(f"has region {settings.region}, and base_url is in {found['region']}: omit one")
    if key is None and settings.profile is None and settings.credentials is None:
        if url:
            _must_be_own("bedrock", url, "profile or api_key_env")
        if _BEDROCK_KEY in variables:
            key = _BEDROCK_KEY
    profile = settings.profile or next((variables[name] for name in _AWS_PROFILES if name in variables), None)
    region = ""
    # A key works in any region, but a signature is valid for one region only.
    if key is None or not url:
        region = _aws_region(settings, url, profile, variables)
    path = ""
    if settings.api != "messages":
        path = "/openai/v1"
    elif settings.endpoint == "mantle":
        path = "/anthropic"
    if not url:
        if region.startswith(_OTHER_PARTITION_PREFIXES):
            raise _LocationError(
                f"is in the region {region}, whose hosts have other names: write the address as base_url"
            )
        url = f"https://bedrock-runtime.{region}.amazonaws.com"
        if settings.endpoint == "mantle":
            url = f"https://bedrock-mantle.{region}.api.aws"
    if not urlsplit(url).path:
        url += path
    source = KEY if key is not None else _aws_source(settings, profile, variables)
    return CloudPlace(url, region=region, key_variable=key, source=source)


def _aws_source(settings: CloudSettings, profile: str | None, variables: Mapping[str, str]) -> Source:
    # The order is that of all AWS SDKs: a profile in the settings, then keys in variables, then a profile in a
    # variable.
    if settings.profile is None and all(name in variables for name in _AWS_KEYS[:2]):
        return Source("AWS keys", f"the keys in {_AWS_KEYS[0]} and {_AWS_KEYS[1]}", _AWS_KEYS)
    may_start = "whose credential_process may be started"
    if profile is not None:
        return Source("AWS profile", f"AWS profile {profile}, {may_start}", profile=profile)
    return Source("AWS default", f"the AWS default credentials, {may_start}")


def _aws_region(settings: CloudSettings, url: str, profile: str | None, variables: Mapping[str, str]) -> str:
    if settings.region:
        return settings.region
    if url and (found := _BEDROCK_HOST.fullmatch(urlsplit(url).hostname or "")):
        return found["region"]
    for name in _AWS_REGIONS:
        if name in variables:
            return _region_of(name, variables[name])
    if region := _profile_region(profile or "default"):
        return _region_of(f"the AWS profile {profile or 'default'}", region)
    raise _LocationError(f'has no region: write region = "us-east-1" into workbench.toml, or set {_AWS_REGIONS[0]}')


def _region_of(where: str, text: str) -> str:
    try:
        return checked_aws_region(text)
    except ValueError as error:
        raise _LocationError(f"cannot be reached: the region in {where} {error}") from None


def _profile_region(profile: str) -> str | None:
    import configparser  # lazy import: few models are at Bedrock

    # The names of these files are not read from a `.env` beside a suite, because such a file can start a program.
    files = (
        (os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config", f"profile {profile}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials", profile),
    )
    for file, section in files:
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(Path(file).expanduser(), encoding="utf-8")
        except (configparser.Error, OSError, ValueError, RuntimeError):
            continue
        for name in (section, profile):
            if (name == section or profile == "default") and (region := parser.get(name, "region", fallback="")):
                return region.strip()
    return None


def _vertex(settings: CloudSettings, url: str, key: str | None, given: Mapping[str, str]) -> CloudPlace:
    region = settings.region or ""
    if not region and (found := _VERTEX_HOST.fullmatch(urlsplit(url).hostname or "")):
        region = found["region"] or found["area"] or "global"
    for name in _VERTEX_REGIONS:
        if not region and name in given:
            region = _label_of(name, given[name])
    region = region or "global"
    project = settings.project or ""
    for name in _VERTEX_PROJECTS:
        if not project and name in given:
            project = _label_of(name, given[name])
    if not url:
        url = f"https://{_vertex_host(region)}"
    if not urlsplit(url).path:
        url += "/v1"
    if key is None and settings.credentials is None:
        _must_be_own("vertex", url, "api_key_env")
    if key is not None:
        if not project:
            variables = " or ".join(_VERTEX_PROJECTS)
            raise _LocationError(f"has no project: write project into workbench.toml, or set {variables}")
        source = KEY
    else:
        source = _google_source(given)
    return CloudPlace(url, region=region, project=project, key_variable=key, source=source)


def _google_source(variables: Mapping[str, str]) -> Source:
    if _GOOGLE_FILE in variables:
        text = f"the Google credentials in the file of {_GOOGLE_FILE}"
        # Google's library reads the process's own variable. A file that only a `.env` names is not trusted.
        if os.environ.get(_GOOGLE_FILE, "").strip() == variables[_GOOGLE_FILE]:
            return Source("Google default", text)
        return Source("Google file", text, (_GOOGLE_FILE,))
    return Source("Google default", "the Google default credentials, for which gcloud may be started")


def _vertex_host(region: str) -> str:
    if region == "global":
        return "aiplatform.googleapis.com"
    if region in ("us", "eu"):
        return f"aiplatform.{region}.rep.googleapis.com"
    return f"{region}-aiplatform.googleapis.com"


def _label_of(variable: str, text: str) -> str:
    try:
        return checked_label(text)
    except ValueError as error:
        raise _LocationError(f"cannot be reached: {variable} {error}") from None


def _must_be_own(cloud: Cloud, url: str, names: str) -> None:
    """Raise _LocationError if an address is not the cloud's own.

    Call this if the user named no credentials for the address."""
    if not is_own_address(cloud, url):
        raise _LocationError(
            f"is at an address outside {CLOUD_TITLES[cloud]}, and credentials are sent there only on request:"
            f' name the credentials with {names}, or write credentials = "default"'
        )


def is_signed_header(name: str) -> bool:
    """Return whether a header carries credentials or a signature at any of the clouds."""
    return name.lower() in ("authorization", "api-key", "x-api-key") or name.lower().startswith("x-amz-")


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "resource": checked_label,
    "region": checked_label,
    "project": checked_label,
    "profile": checked_profile,
    "api_version": checked_api_version,
}
_CHOICES: Mapping[str, tuple[str, ...]] = {"endpoint": BEDROCK_ENDPOINTS, "credentials": get_args(CredentialChoice)}

_Name = TypeVar("_Name", bound=str)


def setting_problems(cloud: Cloud | None, written: Mapping[_Name, str]) -> Iterator[tuple[_Name, str]]:
    """Yield each invalid cloud setting of a provider with its problem.

    `cloud` is `None` for a provider that is not a cloud."""
    for name, value in written.items():
        users = [known for known, names in SETTINGS_OF.items() if name in names]
        choices: tuple[str, ...] = _CHOICES.get(name, ())
        if cloud is not None and name == "api":
            choices = APIS_OF[cloud]
        check = _CHECKS.get(name)
        if cloud == "bedrock" and name == "region":
            check = checked_aws_region
        if users and cloud not in users:
            yield name, f"is for provider {' or '.join(map(repr, users))} only: omit it"
        elif choices and value not in choices:
            yield name, f"must be {' or '.join(map(repr, choices))} for provider {cloud!r}"
        elif check is not None:
            try:
                check(value)
            except ValueError as error:
                yield name, str(error)
