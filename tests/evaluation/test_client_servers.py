"""Configurations of MCP clients in each of their forms."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.evaluation.client_servers import (
    ClientConfigError,
    FoundServers,
    Reading,
    read_servers,
    servers_of_client,
    servers_on_machine,
    typed_server,
)


def read(folder: Path, text: str, name: str = "client.json") -> FoundServers:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return servers_of_client(file, folder)


def of(folder: Path, **servers: object) -> FoundServers:
    return read(folder, json.dumps({"mcpServers": servers}))


VS_CODE = """{
  // asked for once
  "inputs": [{ "id": "shop-key", "type": "promptString", "password": true }],
  "servers": {
    "shop": {
      "type": "stdio", "command": "node", "args": ["server.js", "// no comment", "a,]",],
      "env": { "SHOP_KEY": "${input:shop-key}", "REGION": "${env:REGION}" }, /* more
      to come */
    },
    "web": { "type": "sse", "url": "https://x.test/sse", "headers": { "X-Key": "${input:shop-key}", "Accept": "a$b" } },
  },
}"""


def test_vs_code(tmp_path: Path) -> None:
    found = read(tmp_path, VS_CODE, ".vscode/mcp.json")
    assert found.tables == (
        {
            "name": "shop",
            "command": ["node", "server.js", "// no comment", "a,]"],
            "env": {"SHOP_KEY": "$SHOP_KEY", "REGION": "$REGION"},
        },
        {
            "name": "web",
            "url": "https://x.test/sse",
            "transport": "sse",
            "headers": {"X-Key": "$SHOP_KEY", "Accept": "a$$b"},
        },
    )
    assert found.variables == {"SHOP_KEY": None, "REGION": None}


CODEX = """
model = "o3"
[mcp_servers.hub]
command = "npx"
args = ["-y", "hub", "--api-key", "sk-proj-0123456789abcdefghij"]
env = { PAT = "ghp_x" }
env_vars = ["REGION"]
startup_timeout_sec = 20
tool_timeout_sec = 1.5
[mcp_servers.web]
url = "https://x.test/mcp"
bearer_token_env_var = "WEB_TOKEN"
http_headers = { "X-Key" = "k1" }
env_http_headers = { "X-Org" = "ORG" }
[mcp_servers.off]
command = "x"
enabled = false
"""


def test_codex(tmp_path: Path) -> None:
    found = read(tmp_path, CODEX, ".codex/config.toml")
    assert found.tables == (
        {
            "name": "hub",
            "command": ["sh", "-c", 'exec npx -y hub --api-key "$HUB_API_KEY"'],
            "env": {"REGION": "$REGION", "PAT": "$PAT", "HUB_API_KEY": "$HUB_API_KEY"},
            "start_timeout_s": 20,
            "call_timeout_s": 1.5,
        },
        {
            "name": "web",
            "url": "https://x.test/mcp",
            "headers": {"X-Key": "$WEB_X_KEY", "X-Org": "$ORG", "Authorization": "Bearer $WEB_TOKEN"},
        },
    )
    assert found.variables["PAT"] == "ghp_x"
    assert found.variables["WEB_TOKEN"] is None
    assert found.notes == ("off is left out: it is disabled in the configuration",)
    with pytest.raises(ClientConfigError, match=r"bad\.toml is not TOML: Invalid value"):
        read(tmp_path, "model = ", "bad.toml")


@pytest.mark.parametrize(
    ("keys", "expected", "notes"),
    [
        ({"oauth": {"clientId": "c-1", "callbackPort": 8080}}, {"auth": "oauth", "client_id": "c-1"}, 0),
        (
            {"auth": {"CLIENT_ID": "${env:WHO}", "CLIENT_SECRET": "hush-4711", "scopes": ["a", "b"]}},
            {"auth": "oauth", "client_id": "$WHO", "scope": "a b"},
            1,
        ),
        ({"oauth": {}}, {"auth": "oauth"}, 0),
        ({"oauth": {}, "headers": {"authorization": "Bearer ${T}"}}, {"headers": {"authorization": "Bearer $T"}}, 0),
        ({"oauth": False}, {}, 0),
    ],
)
def test_logins_of_clients(tmp_path: Path, keys: dict[str, object], expected: dict[str, object], notes: int) -> None:
    url = {"url": "https://x.test/mcp"}
    found = read(tmp_path, json.dumps({"mcpServers": {"web": {**url, **keys}}}), "mcp.json")
    assert found.tables == ({"name": "web", **url, **expected},)
    assert len(found.notes) == notes and "hush" not in repr(found)
    assert not notes or found.notes[0].startswith("the client secret of web is left out")


def test_projects_of_claude_code(tmp_path: Path) -> None:
    def server(command: str) -> dict[str, object]:
        return {"type": "stdio", "command": command, "env": {"KEY": "literal"}}

    here, other = tmp_path / "here", tmp_path / "other"
    document = {
        "mcpServers": {"everywhere": server("e"), "both": server("b")},
        "projects": {
            str(here): {"mcpServers": {"mine": server("m"), "both": server("nearer")}},
            str(other): {"mcpServers": {"theirs": server("t")}},
            str(tmp_path / "none"): {"history": []},
        },
    }
    (here / "suites").mkdir(parents=True)
    file = tmp_path / ".claude.json"
    file.write_text(json.dumps(document), encoding="utf-8")

    def names(folder: Path, *wanted: str) -> dict[object, object]:
        tables = servers_of_client(file, folder, wanted).tables
        assert all(table["env"] == {"KEY": "$KEY"} for table in tables)
        return {table["name"]: table["command"] for table in tables}

    assert names(here / "suites") == {"everywhere": ["e"], "both": ["nearer"], "mine": ["m"]}
    assert names(tmp_path) == {"everywhere": ["e"], "both": ["b"]}
    assert names(here, "theirs") == {"theirs": ["t"]}
    del document["mcpServers"]
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ClientConfigError, match=r"other projects: choose some with --server \(mine, both, theirs\)"):
        names(tmp_path)


def test_what_clients_on_this_machine_use(tmp_path: Path) -> None:
    project = tmp_path / "code" / "project"
    for name, text in {
        "code/project/.vscode/mcp.json": VS_CODE,
        ".codex/config.toml": CODEX,
        ".cursor/mcp.json": "{ broken",
        ".claude.json": json.dumps({"mcpServers": {"bad": {}, "time": {"command": "uvx", "args": ["t"]}}}),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [(each.client, each.name) for each in servers_on_machine(project, tmp_path)] == [
        ("VS Code", "shop"),
        ("VS Code", "web"),
        ("Claude Code", "time"),
        ("Codex", "hub"),
        ("Codex", "web"),
    ]


def test_claude_and_cursor(tmp_path: Path) -> None:
    hub = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github@2026.1.14"], "env": {"PAT": "ghp_x"}}
    found = of(tmp_path, hub=hub, code={"command": "x", "env": {"PAT": "other", "LEVEL": "${LEVEL:-info}", "N": 5}})
    assert found.tables[0] == {"name": "hub", "command": ["npx", *hub["args"]], "env": {"PAT": "$PAT"}}
    assert found.tables[1]["env"] == {"PAT": "$CODE_PAT", "LEVEL": "$LEVEL", "N": "$N"}
    assert found.variables == {"PAT": "ghp_x", "CODE_PAT": "other", "LEVEL": None, "N": "5"}
    off = of(tmp_path, a={"command": "x"}, b={"command": "y", "disabled": True, "envFile": ".env"})
    assert ([table["name"] for table in off.tables], len(off.notes)) == (["a"], 1)


@pytest.mark.parametrize(
    ("args", "line", "values"),
    [
        (["--api-key", "hunter2"], 'exec x --api-key "$S_API_KEY"', {"S_API_KEY": "hunter2"}),
        (["--token=a b"], 'exec x --token="$S_TOKEN"', {"S_TOKEN": "a b"}),
        (["postgres://u:pw@h/d"], 'exec x "$S_URL"', {"S_URL": "postgres://u:pw@h/d"}),
        (["ghp_a1B2c3D4e5F6g7H8i9J0"], 'exec x "$S_KEY"', {"S_KEY": "ghp_a1B2c3D4e5F6g7H8i9J0"}),
        (["-H", "Authorization: Bearer pw"], "exec x -H 'Authorization: Bearer '\"$S_TOKEN\"", {"S_TOKEN": "pw"}),
        (["${env:ROOT}/it's"], 'exec x "$ROOT"\'/it\'"\'"\'s\'', {"ROOT": None}),
    ],
)  # fmt: skip
def test_secrets_in_arguments_come_from_variables(
    tmp_path: Path, args: list[str], line: str, values: dict[str, str | None]
) -> None:
    found = of(tmp_path, s={"command": "x", "args": args})
    env = {name: f"${name}" for name in values}
    assert found.tables == ({"name": "s", "command": ["sh", "-c", line], "env": env},)
    assert found.variables == values


PLANTED = st.text("abcXYZ019$-_{}/+= ", min_size=3).map(lambda text: f"hush{text}hush")


@given(PLANTED, st.sampled_from(["{}", "${{env:A}}{}", "{}${{A}}", "Bearer {}", "Basic {}${{A}}"]))
def test_no_value_of_a_telling_place_is_copied(secret: str, form: str) -> None:
    value = form.format(secret)
    place = Path("client.json")
    started = {"command": "x", "args": ["--header", f"X-Key: {secret}", "--token", value], "env": {"MY_TOKEN": value}}
    servers = {"s": started, "t": {"url": "https://x.test", "headers": {"Authorization": value, "X-Any": value}}}
    try:
        found = read_servers(servers, Reading("client.json", place, Path()))
    except ClientConfigError as error:  # `${…}` inside the secret
        assert "hush" not in str(error)
        return
    assert "hush" not in repr(found.tables)
    assert "hush" not in repr(found)


def test_a_password_between_variables_is_not_copied(tmp_path: Path) -> None:
    args = ["postgres://u:hush@${HOST}/d", "postgres://u:${PW}@h/d"]
    (table,) = of(tmp_path, s={"command": "x", "args": args}).tables
    assert table["command"] == ["sh", "-c", 'exec x "$S_URL" postgres://u:"$PW"@h/d']


def test_docker_passes_variables_on_and_plain_words_stay(tmp_path: Path) -> None:
    found = of(
        tmp_path, s={"command": "docker", "args": ["run", "-i", "-e", "KEY=pw", "mcp/fetch", "--max-tokens", "50"]}
    )
    command = ["docker", "run", "-i", "-e", "KEY", "mcp/fetch", "--max-tokens", "50"]
    assert found.tables == ({"name": "s", "command": command, "env": {"KEY": "$KEY"}},)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9), max_size=3))
def test_a_shell_passes_on_the_words_as_they_were(words: list[str]) -> None:
    words = [word for word in words if "${" not in word and not word.startswith("$")]
    found = typed_server("printf x", None)
    assert found.tables[0]["command"] == ["printf", "x"]
    entry = {"command": "printf", "args": ["%s\\n", *words, "--token", "pw"], "cwd": "/"}
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (table,) = of(Path(folder), s=entry).tables
    variables = {str(name): "pw" for name in table.get("env", {})}  # type: ignore[attr-defined]
    if variables != {"S_TOKEN": "pw"}:
        return  # a word itself was taken for a secret
    said = subprocess.run(table["command"], env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, check=True)  # type: ignore[call-overload]
    assert said.stdout.decode() == "".join(f"{word}\n" for word in (*words, "--token", "pw"))


def test_the_folder_of_the_workspace_is_named_from_the_suite(tmp_path: Path) -> None:
    server = {"command": "x", "args": ["${workspaceFolder}/a.js"]}
    text = json.dumps({"servers": {"s": server, "t": {**server, "cwd": "${workspaceFolder}/in"}}})
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "mcp.json").write_text(text)
    found = servers_of_client(tmp_path / ".vscode" / "mcp.json", tmp_path / "suites")
    assert [(table["command"], table.get("cwd")) for table in found.tables] == [
        (["x", "../a.js"], None),
        (["x", "../a.js"], "../in"),
    ]
    text = json.dumps({"servers": {"s": {**server, "cwd": "${userHome}/in"}, "t": {**server, "cwd": "${env:ROOT}/in"}}})
    (tmp_path / ".vscode" / "mcp.json").write_text(text)
    (home, variable) = servers_of_client(tmp_path / ".vscode" / "mcp.json", tmp_path / "suites").tables
    assert home["cwd"] == "~/in"
    assert os.path.normpath(Path("~/in", home["command"][1]).expanduser()) == str(tmp_path / "a.js")  # type: ignore[index]
    assert variable["command"] == ["sh", "-c", f'cd "$ROOT"/in && exec x {tmp_path}/a.js']


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n"mcpServers": {\n"a": }}', "client.json:3 is not JSON"),
        ("[]", "is not a configuration of an MCP client"),
        ('{"mcpServers": []}', "mcpServers must map the name of each server"),
        ('{"mcpServers": {}}', "mcpServers is empty"),
        ('{"mcpServers": {"a": 1}}', "mcpServers.a must contain the settings of a server"),
        ('{"servers": {"a": {}}}', "servers.a must have exactly one of the keys command and url"),
        ('{"mcpServers": {"a": {"command": 5}}}', "mcpServers.a.command must be a string"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "mcpServers.a.args must be a list"),
        ('{"mcpServers": {"a": {"command": "x", "args": ["y", 1]}}}', "mcpServers.a.args[1] must be a string"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": ["planted"]}}}}', "mcpServers.a.env.K must be a string"),
        ('{"mcpServers": {"a": {"url": "https://x.test?api_key=planted"}}}', "mcpServers.a.url holds a secret"),
        ('{"mcpServers": {"a": {"url": "x"}}}', "mcpServers.a.url: a URL"),
        (
            '{"servers": {"a": {"command": "x", "args": ["${command:pick}"]}}}',
            "servers.a.args[0]: a suite has no counterpart of ${command",
        ),
        ('{"mcpServers": {"a": {"command": "x", "disabled": true}}}', "is disabled"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ClientConfigError) as refused:
        read(tmp_path, text)
    assert said in str(refused.value)
    assert "planted" not in str(refused.value)


def test_what_is_typed() -> None:
    found = typed_server("TOKEN=pw npx -y @scope/server-shop --verbose", None)
    assert found.tables == (
        {"name": "shop", "command": ["npx", "-y", "@scope/server-shop", "--verbose"], "env": {"TOKEN": "$TOKEN"}},
    )
    assert found.variables == {"TOKEN": "pw"}
    words = ["A=1", "npx", "-y", "x", "--flag"]
    env = [
        "GITHUB_TOKEN",
        "LEVEL=debug",
        "DATA=/srv/Data-1",
        "URL=https://$HOST/a",
        "MY_KEY=pw",
        "ANY=ghp_0123456789Ab",
    ]
    found = typed_server(words, None, env, "../in")
    assert found.tables == (
        {
            "name": "x",
            "command": ["npx", "-y", "x", "--flag"],
            "cwd": "../in",
            "env": {
                "A": "1",
                "GITHUB_TOKEN": "$GITHUB_TOKEN",
                "LEVEL": "debug",
                "DATA": "/srv/Data-1",
                "URL": "https://$HOST/a",
                "MY_KEY": "$MY_KEY",
                "ANY": "$ANY",
            },
        },
    )
    assert found.variables == {"GITHUB_TOKEN": None, "HOST": None, "MY_KEY": "pw", "ANY": "ghp_0123456789Ab"}
    for text, url, said in (("A B=planted", None, "as NAME=value"), ("A", "https://x.test/", "that a command starts")):
        with pytest.raises(ClientConfigError, match=said) as refused:
            typed_server(None if url else "npx x", url, [text])
        assert "planted" not in str(refused.value)
    with pytest.raises(ClientConfigError, match=r"^--url holds a secret"):
        typed_server(None, "https://user:pw@x.test/")
    assert typed_server(None, "https://x.test/sse").tables[0]["transport"] == "sse"
