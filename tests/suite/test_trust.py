"""What a suite would start is listed exactly, and trust holds for one path and exactly those needs."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.suite.examples import CASE, HEAD, WHOLE, suite_of
from tests.tables import each_row
from workbench.suite.files import locked
from workbench.suite.suite_file import load_suite
from workbench.suite.trust import (
    Address,
    CodeFile,
    Command,
    ModelNeed,
    Module,
    SuiteNeeds,
    TrustError,
    TrustStore,
    needs_trust,
)

COMMAND = HEAD + '[[servers]]\nname = "s"\ncommand = ["python", "server.py"]\nenv = { KEY = "$TOKEN" }\n' + CASE


def needs_of(text: str, path: Path = Path("/suites/a.toml")) -> SuiteNeeds:
    return needs_trust(suite_of(text), path)


def test_everything_that_needs_trust_is_listed_exactly() -> None:
    needs = needs_of(WHOLE)
    assert needs == SuiteNeeds(
        folder=Path("/suites"),
        commands=(
            Command(
                ("python", "home.py", "--port", "0"),
                (("PATHS", "${ROOT}/bin:${ROOT}"), ("PRICE", "$$5"), ("TOKEN", "$HOME_TOKEN")),
            ),
        ),
        modules=(Module("servers.mine", "app"),),
        urls=(Address("https://example.test/mcp", "sse", (("Authorization", "Bearer $MCP_TOKEN"),)),),
        python=("checks:is_fine", "mocks:calculate"),
        environment=("HOME_TOKEN", "MCP_TOKEN", "ROOT"),
    )  # fmt: skip
    assert not needs.nothing
    assert needs.lines() == (
        "run the command: PATHS='${ROOT}/bin:${ROOT}' PRICE='$$5' TOKEN='$HOME_TOKEN' python home.py --port 0"
        " (in /suites)",
        "import the module: servers.mine:app (from /suites)",
        "open the address: Authorization='Bearer $MCP_TOKEN' https://example.test/mcp over sse",
        "call the Python function: checks:is_fine (from /suites)",
        "call the Python function: mocks:calculate (from /suites)",
        "read the environment variable: HOME_TOKEN",
        "read the environment variable: MCP_TOKEN",
        "read the environment variable: ROOT",
    )


COMMANDS = [
    'command = ["srv"]\nenv = { LD_PRELOAD = "evil.so" }',
    'command = ["srv", "with", "LD_PRELOAD=evil.so"]',
    'command = ["LD_PRELOAD=evil.so", "srv"]',
    'command = ["LD_PRELOAD=evil.so srv"]',
    'command = ["\'LD_PRELOAD=evil.so\'", "srv"]',
    'command = ["srv"]\nenv = { LD_PRELOAD = "evil.so srv" }',
    'command = ["srv"]\nenv = { "LD PRELOAD" = "evil.so" }',
    'command = ["LD PRELOAD=evil.so", "srv"]',
    'command = ["A=a", "srv"]\nenv = { B = "b" }',
    'command = ["srv"]\nenv = { A = "a", B = "b" }',
    'command = ["srv"]\ncwd = "/other"',
    'command = ["srv", "(in /other)"]',
]


def test_two_commands_never_look_alike_nor_share_a_fingerprint() -> None:
    needs = [needs_of(f'{HEAD}[[servers]]\nname = "s"\n{command}\n{CASE}') for command in COMMANDS]
    assert len({need.lines() for need in needs}) == len(COMMANDS)
    assert len({need.fingerprint for need in needs}) == len(COMMANDS)
    assert needs[0].lines() == ("run the command: LD_PRELOAD=evil.so srv (in /suites)",)
    assert needs[2].lines() == ("run the command: 'LD_PRELOAD=evil.so' srv (in /suites)",)


NAMES = st.text("AB '\"", min_size=1, max_size=3)
WORDS = st.text("AB =$'\"\\", max_size=4)
SOME_COMMANDS = st.builds(
    Command,
    st.lists(WORDS, min_size=1, max_size=3).map(tuple),
    st.dictionaries(NAMES, WORDS, max_size=2).map(lambda env: tuple(sorted(env.items()))),
)


@given(SOME_COMMANDS, SOME_COMMANDS)
def test_a_command_is_read_off_its_line_without_doubt(left: Command, right: Command) -> None:
    assert (str(left) == str(right)) == (left == right)


@given(SOME_COMMANDS)
def test_a_shell_takes_the_line_of_a_command_apart_into_the_same_words(command: Command) -> None:
    given_env = [f"{name}={value}" for name, value in command.env]
    assert shlex.split(str(command)) == [*given_env, *command.words]


ADDRESSES = [
    'url = "http://x/"\nheaders = { A = "a" }',
    'url = "http://x/ A=a"',
    'url = "http://x/"',
    'url = "http://x/"\ntransport = "sse"',
    'url = "http://x/ over sse"',
    'url = "http://x/"\nheaders = { A = "a http://x/" }',
    'url = "http://x/ with your OAuth login, from the authorization server that it names"',
    *(f'url = "http://x/"\nauth = "{keys}' for keys in (
        'oauth"',
        'oauth"\nissuer = "http://as/"',
        'oauth"\nclient_id = "c"',
        'oauth"\nclient_id = "c, from http://as/ alone, which gets the secret $S"\nissuer = "http://as/"',
        'oauth"\nclient_id = "c"\nclient_secret = "$S"\nissuer = "http://as/"',
        'client_credentials"\nclient_id = "c"\nclient_secret = "$S"\nissuer = "http://as/"',
        'client_credentials"\nclient_id = "c"\nclient_secret = "$S"\nissuer = "http://as/"\nscope = "use"',
    )),
]  # fmt: skip


def test_two_addresses_never_look_alike_nor_share_a_fingerprint() -> None:
    needs = [needs_of(f'{HEAD}[[servers]]\nname = "s"\n{address}\n{CASE}') for address in ADDRESSES]
    assert len({need.lines() for need in needs}) == len(ADDRESSES)
    assert len({need.fingerprint for need in needs}) == len(ADDRESSES)
    assert needs[-1].lines() == (
        "open the address: http://x/ with the OAuth login of a machine for the scope use as the client c, "
        "from http://as/ alone, which gets the secret '$S'",
        "read the environment variable: S",
    )


PYTHON = "{ python = 'm:f' }"


@each_row(
    "text",
    [
        CASE + f"ordered = [{{ tool = 't', args = {{ x = {PYTHON} }} }}]",
        CASE + f"ordered = [{{ any_order = [{{ tool = 't', args = {{ x = {PYTHON} }} }}] }}]",
        CASE + f"unordered = [{{ tool = 't', args = {{ x = {PYTHON} }} }}]",
        CASE + f"disallowed = [{{ tool = 't', args = {{ x = {PYTHON} }} }}]",
        CASE + f"response = {PYTHON}",
        CASE + f"response = {{ all_of = ['a', {{ any_of = [{PYTHON}] }}] }}",
        CASE + "mocks = [{ tool = 't', python = 'm:f' }]",
        CASE + f"mocks = [{{ tool = 't', result = 1, when = {{ x = {{ all_of = [{PYTHON}] }} }} }}]",
        CASE + f"[[mocks]]\ntool = 't'\nresult = 1\nwhen = {{ x = {PYTHON} }}",
        CASE + f"variants = [{{ name = 'v', ordered = [{{ tool = 't', args = {{ x = {PYTHON} }} }}] }}]",
        f"[[cases]]\nname = 'a'\nsteps = [{{ user = 'u', tool = 't', args = {{ x = {PYTHON} }} }}]",
    ],
)
def test_a_python_function_is_found_wherever_it_stands(text: str) -> None:
    assert needs_of(HEAD + text).python == ("m:f",)


def test_a_suite_of_tools_and_mocks_needs_no_trust(tmp_path: Path) -> None:
    needs = needs_of(HEAD + "[[tools]]\nname = 't'\n[[mocks]]\ntool = 't'\nresult = '$HOME'\n" + CASE)
    assert needs.nothing
    assert needs.lines() == ()
    assert TrustStore(tmp_path / "trust.json").is_trusted(tmp_path / "a.toml", needs)


def test_trust_is_remembered_for_one_path_and_exactly_these_needs(tmp_path: Path) -> None:
    file, suite = tmp_path / "state" / "trust.json", tmp_path / "a.toml"
    needs = needs_of(COMMAND)
    assert not TrustStore(file).is_trusted(suite, needs)
    TrustStore(file).trust(suite, needs)
    assert TrustStore(file).is_trusted(suite, needs)
    assert not TrustStore(file).is_trusted(tmp_path / "b.toml", needs)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("server.py", "other.py"),
        lambda text: text.replace('"server.py"', '"server.py", "-x"'),
        lambda text: text.replace('"server.py"', '"server", ".py"'),
        lambda text: text.replace("$TOKEN", "$OTHER"),
        lambda text: text.replace("KEY =", "LD_PRELOAD ="),
        lambda text: text.replace("$TOKEN", "fixed"),
        lambda text: text + "response = { python = 'm:f' }",
        lambda text: text.replace("[[cases]]", "[[servers]]\nname = 'm'\nmodule = 'm'\n[[cases]]"),
        lambda text: text.replace("[[cases]]", "[[servers]]\nname = 'u'\nurl = 'http://x'\n[[cases]]"),
    ],
)
def test_any_change_of_the_needs_is_asked_about_again(tmp_path: Path, change: Callable[[str], str]) -> None:
    store, suite = TrustStore(tmp_path / "trust.json"), tmp_path / "a.toml"
    store.trust(suite, needs_of(COMMAND))
    assert not store.is_trusted(suite, needs_of(change(COMMAND)))


def test_changes_of_anything_else_are_not_asked_about(tmp_path: Path) -> None:
    store, suite = TrustStore(tmp_path / "trust.json"), tmp_path / "a.toml"
    store.trust(suite, needs_of(COMMAND))
    changed = COMMAND.replace("Do it.", "Do that.").replace('name = "s"', 'name = "renamed"')
    assert store.is_trusted(suite, needs_of(changed))


def test_a_link_in_another_folder_is_another_suite_since_its_commands_run_there(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    suite, link = tmp_path / "mine" / "a.toml", tmp_path / "theirs" / "a.toml"
    suite.write_text(COMMAND)
    link.symlink_to(suite)
    (tmp_path / "same").symlink_to(tmp_path / "mine", target_is_directory=True)
    store = TrustStore(tmp_path / "trust.json")
    store.trust(suite, needs_of(COMMAND))
    assert store.is_trusted(tmp_path / "same" / "a.toml", needs_of(COMMAND))
    assert store.is_trusted(tmp_path / "theirs" / ".." / "mine" / "a.toml", needs_of(COMMAND))
    assert not store.is_trusted(link, needs_of(COMMAND))


def test_bundled_suites_are_trusted_only_where_they_really_lie(tmp_path: Path) -> None:
    samples, outside = tmp_path / "samples", tmp_path / "outside"
    for folder in (samples, outside):
        folder.mkdir()
        (folder / "a.toml").write_text(COMMAND)
    (samples / "link.toml").symlink_to(outside / "a.toml")
    (outside / "link.toml").symlink_to(samples / "a.toml")
    (tmp_path / "samples-copy").mkdir()
    store = TrustStore(tmp_path / "trust.json", bundled_folder=samples)
    needs = needs_of(COMMAND)
    assert store.is_trusted(samples / "a.toml", needs)
    for elsewhere in (
        outside / "a.toml",
        samples / "link.toml",
        outside / "link.toml",
        samples / ".." / "outside" / "a.toml",
        tmp_path / "samples-copy" / "a.toml",
    ):
        assert not store.is_trusted(elsewhere, needs)


def test_what_a_history_says_at_the_path_of_a_bundled_suite_is_not_bundled(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(COMMAND)
    store = TrustStore(tmp_path / "trust.json", bundled_folder=tmp_path)
    file = load_suite(tmp_path / "a.toml")
    assert store.is_exempt(file)
    assert not store.is_exempt(replace(file, is_historical=True))
    needs = needs_of(COMMAND)
    assert not store.is_trusted(file.path, needs, of_history=True)
    store.trust(file.path, needs)
    assert store.is_trusted(file.path, needs, of_history=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b'{"format": 2, "trusted": {}}', b'{"format": 1, "trusted": {"a": 1}}', b"[" * 100_000],
)
def test_a_damaged_store_is_set_aside_with_a_notice_and_trusts_nothing(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "trust.json"
    file.write_bytes(content)
    store = TrustStore(file)
    assert not store.is_trusted(tmp_path / "a.toml", needs_of(COMMAND))
    assert store.notice is not None
    assert "trust.json.damaged" in store.notice
    assert (tmp_path / "trust.json.damaged").read_bytes() == content
    store.trust(tmp_path / "a.toml", needs_of(COMMAND))
    assert TrustStore(file).is_trusted(tmp_path / "a.toml", needs_of(COMMAND))


def test_a_store_that_cannot_be_read_or_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "trust.json").mkdir()
    store = TrustStore(tmp_path / "trust.json")
    assert not store.is_trusted(tmp_path / "a.toml", needs_of(COMMAND))
    assert store.notice is not None
    assert "no suite is trusted" in store.notice
    with pytest.raises(TrustError, match="cannot be stored"):
        store.trust(tmp_path / "a.toml", needs_of(COMMAND))
    assert {path.name for path in tmp_path.iterdir()} == {"trust.json", "trust.json.lock"}


def test_the_store_is_private_and_holds_no_values(tmp_path: Path) -> None:
    file = tmp_path / "state" / "trust.json"
    TrustStore(file).trust(tmp_path / "a.toml", needs_of(COMMAND))
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in file.parent.iterdir()} == {"trust.json", "trust.json.lock"}
    assert json.loads(file.read_text())["trusted"] == {str(tmp_path / "a.toml"): needs_of(COMMAND).fingerprint}


MODEL = ModelNeed("m", "http://localhost:1/v1", "A_KEY")


def test_models_are_part_of_what_is_trusted(tmp_path: Path) -> None:
    plain = needs_of(COMMAND)
    with_model = replace(plain, models=(MODEL,))
    assert with_model.lines(with_model.models)[-1] == "ask the model m at http://localhost:1/v1 with the key in A_KEY"
    assert not replace(SuiteNeeds(Path("/suites")), models=(MODEL,)).nothing
    assert not replace(SuiteNeeds(Path("/suites")), models=(MODEL,)).beside_models
    store = TrustStore(tmp_path / "trust.json")
    store.trust(tmp_path / "a.toml", plain)
    assert not store.is_trusted(tmp_path / "a.toml", with_model)


def test_two_models_never_look_alike() -> None:
    models = [
        MODEL,
        ModelNeed("m", "http://localhost:1/v1"),
        ModelNeed("m", "http://localhost:1/v1 with the key in A_KEY"),
        ModelNeed("m at http://localhost:1/v1", "x"),
        ModelNeed("m", "http://localhost:1/v1 at x"),
        ModelNeed("m", "http://localhost:1/v1", "A_KEY", headers=(("a", "$B"),)),
        ModelNeed("m", "http://localhost:1/v1", "A_KEY", query=(("a", "$B"),)),
        ModelNeed("m", "http://localhost:1/v1", "A_KEY", headers=(("a", "$B"), ("c", "d"))),
        ModelNeed("m", "http://localhost:1/v1", "A_KEY", headers=(("a", "$B c=d"),)),
        ModelNeed("m", "http://localhost:1/v1", command=("print", "a key")),
        ModelNeed("m", "http://localhost:1/v1", command=("print", "a", "key")),
    ]
    assert len(set(map(str, models))) == len(models)


def test_a_model_without_headers_keeps_the_fingerprint_that_it_always_had() -> None:
    needs = SuiteNeeds(Path("/suites"), models=(MODEL,))
    parts = {
        "commands": [],
        "modules": [],
        "urls": [],
        "python": [],
        "environment": [],
        "models": [{"model": "m", "url": "http://localhost:1/v1", "key": "A_KEY"}],
    }
    assert needs.fingerprint == hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    for changed in (replace(MODEL, headers=(("a", "$B"),)), replace(MODEL, command=("a",))):
        assert replace(needs, models=(changed,)).fingerprint != needs.fingerprint


def test_a_suite_without_models_keeps_the_fingerprint_that_it_always_had() -> None:
    parts = {
        "commands": [{"words": ["python", "server.py"], "env": [["KEY", "$TOKEN"]]}],
        "modules": [],
        "urls": [],
        "python": [],
        "environment": ["TOKEN"],
    }
    assert needs_of(COMMAND).fingerprint == hashlib.sha256(json.dumps(parts).encode()).hexdigest()


WRITER = """
import sys
from pathlib import Path
from workbench.suite.trust import Command, SuiteNeeds, TrustStore
store, number = TrustStore(Path(sys.argv[1])), sys.argv[2]
input()
for suite in range(5):
    needs = SuiteNeeds(Path("/suites"), commands=(Command(("srv", number, str(suite))),))
    store.trust(Path(f"/suites/{number}-{suite}.toml"), needs)
"""


@pytest.mark.slow
def test_programs_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    command = [sys.executable, "-c", WRITER, str(file)]
    writers = [subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, text=True) for number in range(8)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.wait(timeout=60) == 0
        assert writer.stdin is not None
        writer.stdin.close()
    store = TrustStore(file)
    for number in range(8):
        for suite in range(5):
            needs = SuiteNeeds(Path("/suites"), commands=(Command(("srv", str(number), str(suite))),))
            assert store.is_trusted(Path(f"/suites/{number}-{suite}.toml"), needs)


def test_a_store_that_another_program_keeps_locked_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.suite.trust.LOCK_TIMEOUT_S", 0.05)
    store = TrustStore(tmp_path / "trust.json")
    with locked(tmp_path / "trust.json.lock", 1), pytest.raises(TrustError, match="another program has locked it"):
        store.trust(tmp_path / "a.toml", needs_of(COMMAND))
    store.trust(tmp_path / "a.toml", needs_of(COMMAND))
    assert store.is_trusted(tmp_path / "a.toml", needs_of(COMMAND))


def test_the_content_of_code_counts_and_entries_of_before_are_completed_with_it(tmp_path: Path) -> None:
    file, suite = tmp_path / "trust.json", tmp_path / "a.toml"
    then, now = (replace(needs_of(COMMAND), files=(CodeFile("checks.py", hash_),)) for hash_ in ("1" * 64, "2" * 64))
    store = TrustStore(file)
    store.trust(suite, then)
    assert store.is_trusted(suite, then)
    assert not store.is_trusted(suite, now)
    assert store.changed_files(suite, now) == ("checks.py",)
    # An earlier version wrote this without files. Trust covers the files' content until it is known.
    file.write_text(json.dumps({"format": 1, "trusted": {str(suite): then.fingerprint}}))
    assert store.is_trusted(suite, then)
    assert store.is_trusted(suite, now)
    store.add_files(suite, then)
    assert store.is_trusted(suite, then)
    assert not store.is_trusted(suite, now)
    # Such a version can also read the present form.
    document = json.loads(file.read_text())
    assert (document["format"], document["trusted"]) == (1, {str(suite): then.fingerprint})
