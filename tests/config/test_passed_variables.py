"""Variables of the shell that servers get without naming them, and the parts of their values that are redacted."""

from __future__ import annotations

from tests.tables import each_row
from workbench.config.passed_variables import add_passed, has_credentials, passed_variables, secret_parts
from workbench.config.secrets import Secrets

TOKEN = "npm_" + "aB3dE6gH9" * 4


def test_proxies_and_settings_of_package_managers_pass_and_nothing_else() -> None:
    shell = {
        **dict.fromkeys(("HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy"), "proxy.corp:3128"),
        **dict.fromkeys(
            ("npm_config_registry", "NPM_CONFIG_CACHE", "UV_INDEX_URL", "PIP_INDEX_URL"), "https://a.corp/x"
        ),
        **dict.fromkeys(("Http_Proxy", "PIPELINE", "UVICORN_PORT", "npm_package_name", "FTP_PROXY", "MY_PIP_X"), "x"),
        "HTTPS_PROXY": "",
        "NODE_EXTRA_CA_CERTS": "/corp.pem",
        "UV_PUBLISH_TOKEN": "abc",
    }
    assert passed_variables(shell) == (
        *("ALL_PROXY", "HTTP_PROXY", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_CACHE", "PIP_INDEX_URL", "UV_INDEX_URL"),
        *("https_proxy", "no_proxy", "npm_config_registry"),
    )


@each_row(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "http://anna:pass@proxy.corp:3128"),
        ("HTTPS_PROXY", "http://anna@proxy.corp:3128"),
        ("http_proxy", "anna:pass@proxy.corp:3128"),
        ("npm_config_https_proxy", "anna:pass@proxy.corp:3128"),
        ("PIP_INDEX_URL", "https://__token__:x@pypi.corp/simple"),
        ("PIP_EXTRA_INDEX_URL", "https://a.corp/simple https://anna:x@b.corp/simple"),
        ("PIP_INDEX_URL", "https://pypi.corp/simple?token=abc"),
        ("PIP_INDEX_URL", "https://dl.corp/aB3dE6gH9jK2mN5pQ8/simple".replace("Q8", "Q8rS")),
        ("UV_INDEX_CORP_PASSWORD", "hunter"),
        ("UV_INDEX_CORP_USERNAME", "bob"),
        ("UV_PUBLISH_TOKEN", "x"),
        ("npm_config__authToken", "x"),
        ("npm_config__auth", "YW5uYTpw"),
        ("npm_config_//registry.corp/:_authToken", "x"),
        ("npm_config_otp", "123456"),
        ("NPM_CONFIG_SOMETHING", TOKEN),
        ("npm_config_anything", "0f8fad5b-d9cb-469f-a165-70867728950e"),
    ],
)
def test_a_user_a_password_or_a_token_is_held_back(name: str, value: str) -> None:
    assert has_credentials(name, value)
    assert passed_variables({name: value}) == ()


@each_row(
    ("name", "value", "parts"),
    [
        ("HTTPS_PROXY", "http://proxy.corp:3128/", ["http://proxy.corp:3128", "proxy.corp"]),
        ("HTTP_PROXY", "proxy.corp:3128", ["proxy.corp:3128", "proxy.corp"]),
        ("HTTP_PROXY", "http://proxy:3128", ["http://proxy:3128"]),
        ("HTTP_PROXY", "http://localhost:3128", []),
        ("HTTP_PROXY", "127.0.0.1:3128", []),
        ("NO_PROXY", "localhost,127.0.0.1", []),
        ("NO_PROXY", "example.com", []),
        ("NO_PROXY", "localhost,.corp.test", ["localhost,.corp.test"]),
        ("npm_config_registry", "https://npm.corp.test/x/", ["https://npm.corp.test/x", "npm.corp.test"]),
        ("UV_DEFAULT_INDEX", "http://localhost:3141/simple", []),
        ("PIP_TRUSTED_HOST", "pypi.corp.test", ["pypi.corp.test"]),
        *((name, "true", []) for name in ("npm_config_yes", "PIP_NO_INPUT")),
        *(
            (name, value, [])
            for name, value in (("PIP_TIMEOUT", "60"), ("UV_LINK_MODE", "copy"), ("UV_PYTHON", "3.12"))
        ),
        ("npm_config_loglevel", "error", []),
        ("UV_PYTHON_PREFERENCE", "only-managed", []),
        ("npm_config_cache", "/tmp", []),
        ("UV_CACHE", "/tmp/0f8fad5b-d9cb-469f-a165-70867728950e/uv", []),
        ("npm_config_cache", "C:\\Temp\\0f8fad5b-d9cb-469f-a165-70867728950e", []),
        ("PIP_NO_BINARY", ":all:", []),
    ],
)
def test_addresses_are_redacted_and_ordinary_words_stay(name: str, value: str, parts: list[str]) -> None:
    assert passed_variables({name: value}) == (name,)
    assert list(secret_parts(name, value)) == parts
    secrets = Secrets()
    add_passed([name], {name: value}, secrets)
    report = "true: 1 error at line 60 of copy 3.12, localhost of example.com"
    assert secrets.redact(report) == report
    for part in parts:
        assert part not in secrets.redact(f"cannot reach {part} now")
