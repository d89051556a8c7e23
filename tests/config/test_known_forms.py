"""Tokens of well-known services, private keys and passwords in addresses are always secret."""

from __future__ import annotations

import json
import pickle
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.config.secrets import RedactedPieces, Secrets

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5kL7n"
BODY = f"{MIXED[:32]}\n{MIXED[:32]}\n"
TOKENS = {
    "GITHUB_TOKEN": [
        *(f"gh{kind}_{MIXED[:36]}" for kind in "pousr"),
        f"github_pat_11{MIXED[:20]}_{MIXED}{MIXED[:19]}",
    ],
    "OPENAI_KEY": [f"sk-proj-{MIXED}-{MIXED}_x", f"sk-{MIXED}{MIXED[:8]}", f"sk-svcacct-{MIXED}"],
    "ANTHROPIC_KEY": [f"sk-ant-api03-{MIXED}-{MIXED}AA"],
    "OPENROUTER_KEY": [f"sk-or-v1-{'0a1b2c3d' * 8}"],
    "AWS_KEY": ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"],
    "GOOGLE_KEY": [f"AIza{MIXED[:33]}-_"],
    "SLACK_TOKEN": [f"xox{kind}-1234567890-{MIXED[:24]}" for kind in "abprs"] + [f"xapp-1-A0123-456-{MIXED}"],
    "GITLAB_TOKEN": [f"glpat-{MIXED[:18]}-_"],
    "NPM_TOKEN": [f"npm_{MIXED[:36]}"],
    "PYPI_TOKEN": [f"pypi-AgEIcHlwaS5vcmc{MIXED}-{MIXED}"],
    "HUGGING_FACE_TOKEN": [f"hf_{MIXED[:34]}"],
    "STRIPE_KEY": [f"sk_live_{MIXED[:24]}", f"rk_live_{MIXED[:24]}"],
    "GROQ_KEY": [f"gsk_{MIXED}{MIXED[:12]}"],
    "XAI_KEY": [f"xai-{MIXED}{MIXED}"],
    "JWT": [f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NyJ9.{MIXED}_-"],
    "PRIVATE_KEY": [
        f"-----BEGIN {kind}PRIVATE KEY-----\n{BODY}aB3=\n-----END {kind}PRIVATE KEY-----"
        for kind in ("", "RSA ", "EC ", "OPENSSH ")
    ],
}
SECRETS = [(name, token) for name, tokens in TOKENS.items() for token in tokens]

PASSWORDS = {
    "postgres://bob:pw@h/x": "postgres://bob:$PASSWORD@h/x",
    "see <redis://:s3cr+t@cache:6379>": "see <redis://:$PASSWORD@cache:6379>",
    "mongodb+srv://a%40b:p%40ss!@h": "mongodb+srv://a%40b:$PASSWORD@h",
    "https://u:p@ss@h": "https://u:$PASSWORD@h",
    "https://u:80@h": "https://u:$PASSWORD@h",
    "amqp://u:it's\"é@h": "amqp://u:$PASSWORD@h",
    "https://u:a\\b@h": "https://u:$PASSWORD@h",
    r"{\"a\":\"postgres:\/\/bob:pw@h\"}": r"{\"a\":\"postgres:\/\/bob:$PASSWORD@h\"}",
    "?next=postgres%3A%2F%2Fbob%3Apw%40h": "?next=postgres%3A%2F%2Fbob%3A$PASSWORD%40h",
    f"https://oauth2:glpat-{MIXED[:20]}@gitlab.test/x": "https://oauth2:$GITLAB_TOKEN@gitlab.test/x",
}

ORDINARY = [
    *("ghp_", "ghp_short", "the gho_st", "github_pat_here", "sk-learn", "sk-toggleable__content-is-hidden-by-default"),
    *("sk-proj-", "sk-proj-the-name-of-a-project-in-small-letters", "a task-force, risk-free disk-space", "npm_config"),
    *("npm_config_registry_of_the_company", "hf_hub_download_of_everything_there_is", "hf_", "AKIA", "ASIA PACIFIC"),
    *("ASIAN_COUNTRIES_AND_REGIONS", "xAKIAIOSFODNN7EXAMPLE", "AIzawa", "xoxo-hugs-and-kisses", "xoxb-", "glpat-"),
    *("glpat-put-your-own-token-here-please", "pypi-publish-with-a-very-long-name-of-an-action-that-goes-on", "eyJ"),
    *("eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NyJ9", "eyJhbGciOiJIUzI1NiJ9.rest.of.text"),
    *("sk_live_", "sk_live_key", "rk_live_broadcast", "sk_test_x", "0123456789abcdef" * 4, "uuid-4711-aaaa"),
    "-----BEGIN PUBLIC KEY-----\n" + BODY + "-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + BODY + "-----END CERTIFICATE-----",
    *("-----BEGIN PRIVATE KEY----- is how it begins", "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----"),
    *("---------------------------", "- a\n- b\n-", "https://example.com/@user", "https://example.com:8080/@user/x"),
    *("http://h:80,bob@x.org", "ssh://git@h:22/x", "git@github.com:owner/name", "mailto:bob@x.org", "a://b", "::@"),
    *('{"url":"http://h:80","mail":"b@c.d"}', r'{\"url\":\"http://h:80\",\"mail\":\"b@c.d\"}', "http://h:80\nbob@x.org"),
    *(r'"http://h:80\nbob@x.org"', "[http://h:80](b@c.d)", "http://[::1]:80/a@b", "http://h:80 b@c", "'http://h:80','b@c'"),
    *('f"postgres://{user}:{password}@{host}/x"', "postgres://$USER:$PASSWORD@h", "postgres://u:${DB_PASSWORD}@h"),
    *("https://user:***@h", "https://user:xxxx@h", "https://user:...@h", "postgres://<user>:<password>@<host>"),
    *('"https://u:" + password + "@h"', '"https://u:"+password+"@h"', "'https://u:'.$password.'@h'", "https://u:%s@h"),
    "a%3A%2F%2Fh%3A80%2Fx%40y",
]  # fmt: skip


@each_row(("name", "token"), SECRETS)
def test_a_token_is_redacted_wherever_it_stands(name: str, token: str) -> None:
    secrets = Secrets()
    assert secrets.redact(token) == f"${name}"
    for before, after in (("a ", " b"), ('{"a":"', '"}'), ("KEY=", "\n"), ("x\n", ", y"), ("(", ")."), ("Bearer ", "")):
        text, shown = f"{before}{token}{after}", f"{before}${name}{after}"
        assert secrets.redact(text) == shown
        assert secrets.redacted({"a": [text]}) == {"a": [shown]}
        for _ in range(3):
            text, shown = json.dumps(text), json.dumps(shown)
            assert secrets.redact(text) == shown
            assert secrets.json_may_contain(text)


@each_row(("text", "shown"), PASSWORDS.items())
def test_the_password_of_any_address_is_redacted(text: str, shown: str) -> None:
    secrets = Secrets()
    assert secrets.redact(text) == secrets.redact(secrets.redact(text)) == shown
    assert secrets.redacted({text: text}) == {shown: shown}
    assert "pw@" not in secrets.redact(json.dumps(json.dumps({"a": text})))


@each_row("text", ORDINARY)
def test_ordinary_text_and_code_stay(text: str) -> None:
    secrets = Secrets()
    for each in (text, f"a {text} b", f'"{text}"', json.dumps({"a": text}), json.dumps(json.dumps(text))):
        assert secrets.redact(each) is each
        value = {"a": [each]}
        assert secrets.redacted(value) is value


@given(st.lists(st.from_regex(r"[a-z]{1,12}[-_ .:/@]?[a-zA-Z]{0,9}[-_ .:@]?[0-9]{0,4}", fullmatch=True), max_size=20))
def test_words_with_signs_between_them_stay(words: list[str]) -> None:
    text = " ".join(words)
    assert Secrets().redact(text) is text


PIECE = st.sampled_from([token for _, token in SECRETS] + [*PASSWORDS, *ORDINARY]) | st.text("gs-_k:/@ \n", max_size=4)


@given(st.lists(PIECE, max_size=4), st.sampled_from([" ", "\n", '", "']), st.data())
def test_no_cutting_of_a_stream_changes_what_is_redacted(words: list[str], between: str, data: st.DataObject) -> None:
    text, secrets = between.join(words), Secrets()
    pieces, at, shown = RedactedPieces(), 0, ""
    while at < len(text):
        size = data.draw(st.integers(1, 40))
        shown += pieces.add(text[at : at + size], secrets.finder)
        at += size
    assert shown + pieces.flush(secrets.finder) == secrets.redact(text)


@given(st.lists(PIECE, max_size=3).map(" ".join))
def test_what_is_found_in_a_text_may_be_in_its_json(text: str) -> None:
    secrets = Secrets()
    if secrets.redact(text) is not text:
        assert secrets.json_may_contain(json.dumps([text], ensure_ascii=False))


def test_a_value_that_was_added_keeps_its_name_also_within_a_form() -> None:
    secrets, token = Secrets(), SECRETS[0][1]
    secrets.add("MY_TOKEN", token)
    secrets.add_if_it_looks_secret("DATABASE_URL", "postgres://app:s3cret-pw@db/x")
    assert secrets.redact(f"{token} {SECRETS[1][1]}") == "$MY_TOKEN $GITHUB_TOKEN"
    assert secrets.redact("postgres://app:s3cret-pw@db/x") == "postgres://app:$DATABASE_URL@db/x"
    secrets.add("PART", "dE5gH7jK9mN1")
    assert secrets.redact(SECRETS[1][1]) == "$GITHUB_TOKEN", "no part of it is left over"


def test_what_a_suite_holds_is_the_users_own_but_no_value_that_was_added() -> None:
    secrets, own, other = Secrets(), SECRETS[0][1], SECRETS[1][1]
    pem = TOKENS["PRIVATE_KEY"][0]
    secrets.exempt(f"user = '{own}'\nargs = {{ url = 'https://bob:pw@h' }}\nkey = {json.dumps(pem)}")
    text = f"{own} ftp://bob:pw@x {pem}"
    assert secrets.redact(text) is text
    assert secrets.redact(f"{other} ftp://eve:pw@x") == "$GITHUB_TOKEN ftp://eve:$PASSWORD@x"
    assert pickle.loads(pickle.dumps(secrets)).redact(text) == text
    secrets.add("TOKEN", own)
    assert secrets.redact(own) == "$TOKEN"


UNITS = ["-----BEGIN PRIVATE KEY-----", "https://u:", "https://u:p", "%3A%2F%2Fu%3A", "@x://u:", "a", "-", "-eyJ"]


@each_row("unit", [*UNITS, "sk-", "xoxb-", "sk-proj-", "glpat-", "pypi-"])
def test_no_text_takes_long(unit: str) -> None:
    secrets, text = Secrets(), unit * (100_000 // len(unit)) + "!"
    began_s = process_time()
    secrets.redact(text)
    secrets.finder.undecided_from(text)
    secrets.finder.undecided_from(text[:-1])
    assert process_time() - began_s < 5, "seconds; milliseconds are usual"
