"""All problems of a `workbench.toml` are reported at once, with the file, the line, the place and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.config.models import ConfigError
from workbench.config.settings_file import read_settings

MODEL = '[models.m]\nprovider = "openai"\n'


def problems(folder: Path, text: str) -> tuple[str, ...]:
    file = folder / "workbench.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_settings(file, "project")
    assert all(problem.startswith(f"{file}:") for problem in raised.value.problems)
    return tuple(problem.removeprefix(f"{file}:") for problem in raised.value.problems)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('base_ur = "x"', "3: models.m.base_ur is not a setting: did you mean 'base_url'?"),
        ("zzz = 1", "3: models.m.zzz is not a setting: the settings are provider, base_url"),
        ('api_key = "sk-hidden"', "3: models.m.api_key is not a setting: put the key into an environment variable"),
        ('api_key_env = "sk-hidden"', "3: models.m.api_key_env must be the name of an environment variable"),
        ('api_key_env = "gsk_hiddenHIDDEN4711hidden"', "3: models.m.api_key_env must be the name of"),
        ("api_key_env = 3", "3: models.m.api_key_env is invalid: give the name of an environment variable"),
        ('base_url = "localhost:1234"', "3: models.m.base_url must be an http or https address"),
        ('base_url = "ftp://h"', "3: models.m.base_url must be an http or https address"),
        ('base_url = "http://"', "3: models.m.base_url must be an http or https address"),
        ('base_url = "http://h:99999"', "3: models.m.base_url is not an address"),
        ('base_url = "http://u:hidden@h"', "3: models.m.base_url must not contain a user or a password"),
        ('base_url = "http://h/v1?key=hidden"', "3: models.m.base_url holds what looks like a secret in 'key'"),
        ('base_url = "http://h/v1?a=1&a=2"', "3: models.m.base_url has a name twice after '?'"),
        (
            'base_url = "http://h?a=1"\nquery = { a = "2" }',
            "4: models.m.query has 'a' after '?', and query has it, too",
        ),
        ('query = { key = "hidden" }', "3: models.m.query holds what looks like a secret in 'key': put it into an"),
        ("query = { v = 1 }", "3: models.m.query.v is invalid: give a table of texts"),
        ('query = { "" = "1" }', "3: models.m.query has an invalid parameter name"),
        ('headers = { a = "b\\nc" }', "3: models.m.headers has a line end or another character that requests cannot"),
        ('headers = { "a b" = "c" }', "3: models.m.headers has an invalid header name"),
        ('headers = { "a\\n" = "c" }', "3: models.m.headers has an invalid header name"),
        ('headers = { Host = "c" }', "3: models.m.headers must not contain 'host': the program sets it"),
        ('headers = { Content-Type = "c" }', "3: models.m.headers must not contain 'content-type'"),
        ('headers = { a = "b", A = "c" }', "3: models.m.headers has 'a' twice"),
        ('headers = { a = " " }', "3: models.m.headers has no value for 'a'"),
        ('headers = { a = "1 $" }', "3: models.m.headers has a '$' in 'a' that does not start the name of a variable"),
        ('headers = { authorization = "Bearer hidden" }', "3: models.m.headers holds what looks like a secret in"),
        ('headers = { x-api-key = "hidden" }', "3: models.m.headers holds what looks like a secret in 'x-api-key'"),
        ('headers = { a = "$B sk-hidden1234567890" }', "3: models.m.headers holds what looks like a secret in 'a'"),
        (
            'api_key_env = "A"\nheaders = { Authorization = "$B" }',
            "4: models.m.headers has 'authorization', which holds the key of api_key_env: omit either the header or "
            "api_key_env",
        ),
        ("key_command = 'gcloud auth'", "3: models.m.key_command is invalid: give a program that prints the key, and"),
        ("key_command = []", '3: models.m.key_command names no program: write ["gcloud", "auth"'),
        ('key_command = ["a", "--key=sk-hidden1234"]', "3: models.m.key_command holds what looks like a secret"),
        (
            'api_key_env = "A"\nkey_command = ["a"]',
            "4: models.m.key_command gives the key, but api_key_env also gives a key: omit one of them",
        ),
        ('base_url = "http://h/v1#x"', "3: models.m.base_url must end with its path"),
        (
            'base_url = "http://h/v1/chat/completions"',
            "3: models.m.base_url must end before the path that the API adds",
        ),
        ('base_url = "http://h/v1/messages/"', "3: models.m.base_url must end before the path"),
        ("legacy_auth = true", "3: models.m.legacy_auth is for provider 'anthropic' only"),
        ('api_key_env = "hf_hiddenEFGHijklmnopqrstuvwxyz"', "3: models.m.api_key_env must be the name of"),
        ('base_url = "http://h/v 1"', "3: models.m.base_url must not contain spaces"),
        ('model = ""', "3: models.m.model is invalid: give the model's name"),
        ("params = 3", "3: models.m.params is invalid: give a table"),
        ("params = { stream = false, input = 1 }", "3: models.m.params must not contain 'input', 'stream'"),
        ("params.seed = 2020-01-01", "3: models.m.params.seed is invalid: give a table of JSON values"),
        ("params.temperature = nan", "3: models.m.params must contain only JSON values"),
        ("price = { input = 1 }", "3: models.m.price.output is missing: give US dollars"),
        ("price = { input = -1, output = 1 }", "3: models.m.price.input is invalid: give US dollars"),
        ("price = { input = 1, output = 1, in = 1 }", "3: models.m.price.in is not a setting"),
        ("concurrency = 0", "3: models.m.concurrency is invalid: give a whole number of at least 1"),
        ("concurrency = 1.5", "3: models.m.concurrency is invalid: give a whole number"),
        ("requests_per_minute = 0", "3: models.m.requests_per_minute is invalid: give a number above 0"),
        ("read_timeout_s = inf", "3: models.m.read_timeout_s is invalid: give a number of seconds above 0"),
        ('legacy_auth = "yes"', "3: models.m.legacy_auth is invalid: give true or false"),
    ],
)
def test_a_setting_that_cannot_be_used(tmp_path: Path, line: str, said: str) -> None:
    (problem,) = problems(tmp_path, MODEL + line + "\n[models.n]\nprovider = 'anthropic'\n")
    assert problem.startswith(said)
    assert "hidden" not in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models.m]\n", "1: models.m.provider is missing: give one of 'openai', 'openai-responses', 'anthropic'"),
        ('[models.m]\nprovider = "aws"', "2: models.m.provider is invalid: give one of"),
        ('[models."a:b"]\nprovider = "openai"', "1: models.a:b cannot be the name of a model"),
        ('[models."a b"]\nprovider = "openai"', "1: models.a b cannot be the name of a model"),
        ('[models.offline]\nprovider = "openai"', "1: models.offline cannot be the name of a model"),
        ("models = 3", "1: models is invalid: write each model as a table"),
        ("[models]\nm = 3", " models.m is invalid: write each model as a table"),
        ("[modles.m]", "1: modles is not a setting: did you mean 'models'?"),
        ('[model.oops]\n[models.m]\nprovider = "openai"\nmodel = "x"', "1: model is not a setting: did you mean"),
        ('format = 1\nname = "A suite"', "1: format makes this a suite"),
        ("\n[models.m", "2 is not valid TOML: "),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    assert problems(tmp_path, text)[0].startswith(said)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "workbench.toml"
    for content, said in ((b"\n\xff", ":2 is not UTF-8: the byte 0xff"), ("".encode("utf-16"), ":1 is UTF-16, not ")):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match=said):
            read_settings(file, "user")


def test_all_problems_are_told_each_with_its_line(tmp_path: Path) -> None:
    found = problems(tmp_path, MODEL + "concurrency = 0\n\n[models.n]\nprovidr = 'openai'\nsilence_s = 0\n")
    assert sorted(problem.split(" ")[0] + problem.split(" ")[1] for problem in found) == [
        "3:models.m.concurrency",
        "5:models.n.provider",
        "6:models.n.providr",
        "7:models.n.read_timeout_s",
    ]
