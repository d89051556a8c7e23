"""A server that was typed into the form starts without a question, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.programs import program_of
from workbench.authoring.document import HEAD, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.engine.plan import plan_runs
from workbench.evaluation.approval import Needs, PendingApproval, Trust, TypedServers
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.suite.trust import TrustStore
from workbench.tui.case.form.page import with_table

HEADER = 'format = 1\nname = "S"\n'
OWN = '[[servers]]\nname = "own"\ncommand = ["own"]\nenv = { A = "1", B = "$B" }\n'
OTHER = '[[servers]]\nname = "other"\ncommand = ["other"]\n'
DEFAULT = '[[servers]]\nname = "new"\ncommand = ["python", "server.py"]\n'
CASE = '[[cases]]\nname = "A"\nuser = "Do it."\nexpect_no_calls = true\n'
CALLS = '[[mocks]]\ntool = "t"\npython = "m:f"\n'
SETUP = CASE + 'setup = [{ tool = "drop", args = { table = "users" } }]\n'
MODEL = 'models = ["openai:gpt@http://localhost:1/v1"]\n'


class Desk:
    """A suite on disk and as it is edited, with the user's trust: none, or that of an earlier session in the suite."""

    def __init__(self, folder: Path, text: str, *, trusted: bool) -> None:
        self.program = program_of(folder)
        self.trust = Trust(TrustStore(folder / "trust.json"))
        self.path = folder / "suites" / "suite.toml"
        self.path.parent.mkdir()
        self.path.write_text(text)
        self.suite = OpenSuite(load_suite(self.path))
        if trusted:
            self.answer("always")
            self.trust = Trust(TrustStore(folder / "trust.json"))

    @property
    def typed(self) -> TypedServers:
        return {self.path: self.suite.typed_servers}

    def decision(self, file: SuiteFile | None = None, typed: TypedServers | None = None) -> PendingApproval:
        runs = plan_runs([file or self.suite.file])
        needs = Needs.of_runs(runs, self.program, typed=self.typed if typed is None else typed)
        assert not self.trust.grant_typed(needs)
        return PendingApproval(needs, self.trust)

    def asked(self, file: SuiteFile | None = None, typed: TypedServers | None = None) -> list[str]:
        """Return what the user would be asked about for a run: commands, addresses, calls and so on, without their
        folders."""
        lines: list[str] = []
        for question in self.decision(file, typed).questions:
            lines += (line.partition(": ")[2].partition(" (")[0].replace("'", "") or line for line in question.lines)
        return sorted(lines)

    def answer(self, how: str) -> None:
        decision = self.decision()
        for question in decision.questions:
            decision.answer(question, "always" if how == "always" else "once")
        self.suite.forget_typed(self.suite.typed_servers)

    def change(self, at: int, *, by_keys: bool, **values: object) -> None:
        table = self.suite.document.table(HEAD)
        servers = [*cast("list[Table]", table.get("servers", []))]
        if at == len(servers):
            servers.append({"name": "new", "command": ["python", "server.py"]})
        else:
            server = {**servers[at], **values}
            servers[at] = {key: value for key, value in server.items() if value is not None}
        document = with_table(self.suite.document, HEAD, {**table, "servers": servers})
        assert self.suite.change(document, "typed", by_keys=by_keys)

    def disk(self, old: str, new: str) -> None:
        """Another program writes the file, which is read again or merged with the unsaved changes."""
        assert old in self.suite.disk.text
        text = self.suite.text.replace(old, new)
        disk = parse_suite(self.suite.disk.text.replace(old, new), self.path)
        if self.suite.dirty:
            self.suite.merged(disk, text, "Merged", is_confirmed=False)
        else:
            self.suite.reloaded(disk, None)


Step = Callable[[Desk], object]


def add(at: int) -> Step:
    return lambda desk: desk.change(at, by_keys=True)


def keys(at: int, *command: str, **values: object) -> Step:
    """Type a command or other values, letter by letter; None removes a value."""

    def step(desk: Desk) -> None:
        if command:
            desk.change(at, by_keys=True, command=[*command, "-"])
            values["command"] = [*command]
        desk.change(at, by_keys=True, **values)

    return step


def paste(at: int, *command: str, **values: object) -> Step:
    if command:
        values["command"] = [*command]
    return lambda desk: desk.change(at, by_keys=False, **values)


def toml(old: str, new: str) -> Step:
    return lambda desk: desk.suite.change(Document.of(desk.suite.text.replace(old, new)), "typed as TOML")


def disk(old: str, new: str) -> Step:
    return lambda desk: desk.disk(old, new)


def save(desk: Desk) -> None:
    desk.suite.saved(desk.suite.on_disk)  # type: ignore[arg-type]


def undo(desk: Desk) -> None:
    assert desk.suite.undo() is not None


def redo(desk: Desk) -> None:
    assert desk.suite.redo() is not None


def code(desk: Desk) -> None:
    desk.path.with_name("m.py").write_text("def f(**_): ...")


def run(desk: Desk) -> None:
    assert desk.asked() == []


def copy(desk: Desk) -> None:
    table = desk.suite.document.table(HEAD)
    servers = cast("list[Table]", table["servers"])
    document = with_table(desk.suite.document, HEAD, {**table, "servers": [*servers, {**servers[0], "name": "copy"}]})
    desk.suite.change(document, "Duplicated", by_keys=True)


def approve(desk: Desk) -> None:
    desk.answer("once")


TYPED = (add(1), keys(1, "mine", "x"))
EDITED = "A=1 B=$B own2"
SAME = "A=1 B=$B own", "B"
ALL = sorted(["mine x", *SAME])
MODEL_LINE = "ask the model gpt at http://localhost:1/v1"


@pytest.mark.parametrize(
    ("head", "case", "steps", "asks"),
    [
        (OWN, CASE, TYPED, ()),
        ("", CASE, (add(0), keys(0, "mine")), ()),
        (OWN, CASE, (add(1), keys(1, "mine", env={"C": "$C"}, cwd="sub")), ()),
        (OWN, CASE, (add(1), keys(1, url="http://x", command=None, headers={"H": "$H"})), ()),
        (OWN, CASE, (*TYPED, keys(1, name="renamed")), ()),
        (OWN, CASE, (*TYPED, undo, redo), ()),
        (OWN, CASE, (*TYPED, undo, undo), ("python server.py", *SAME)),
        (OWN, CASE, (*TYPED, run, undo, undo, undo), ()),
        (OWN, CASE, (add(1), keys(1, "mine", answers=["roots"], roots=["sub"], protocol="legacy")), ()),
        (OWN, CASE, (*TYPED, toml('user = "Do it."', 'user = "Do."')), ()),
        (OWN, CASE, (*TYPED, save, disk('name = "S"', 'name = "T"')), ()),
        (OWN, CASE, (*TYPED, disk('name = "S"', 'name = "T"')), ()),
        # A server of the trusted file is edited by keys.
        (OWN, CASE, (keys(0, "own2"),), ()),
        (OWN, CASE, (keys(0, env=None),), ()),
        (OWN, CASE, (keys(0, "own2"), run, undo, undo), ()),
        (OWN, CASE, (keys(0, "own2"), *TYPED, keys(0, cwd="x"), keys(1, "mine", "y")), ()),
        # The command of a new server, until it is replaced.
        (OWN, CASE, (add(1),), ("python server.py", *SAME)),
        (OWN, CASE, (add(1), keys(1, env={"C": "c"})), ("C=c python server.py", *SAME)),
        # A paste, a completion or a duplicate, with letters typed after it.
        (OWN, CASE, (add(1), paste(1, "evil")), ("evil", *SAME)),
        (OWN, CASE, (add(1), paste(1, "evil"), keys(1, "evil", "x")), ("evil x", *SAME)),
        (OWN, CASE, (*TYPED, paste(1, env={"PATH": "evil"})), ("PATH=evil mine x", *SAME)),
        (OWN, CASE, (*TYPED, paste(1, env={"PATH": "evil"}), keys(1, env={"PATH": "evi"})),
         ("PATH=evi mine x", *SAME)),
        (OWN, CASE, (*TYPED, paste(1, cwd="evil"), undo), ()),
        (OWN, CASE, (*TYPED, paste(1, cwd="evil"), undo, redo), ("mine x", *SAME)),
        (OWN, CASE, (copy, keys(1, cwd="sub")), ()),
        # The text of the suite, and the file on disk.
        (OWN, CASE, (toml("[[cases]]", f"{OTHER}[[cases]]"),), ("other", *SAME)),
        (OWN, CASE, (*TYPED, toml("[[cases]]", f"{OTHER}[[cases]]")), ("other", *SAME)),
        (OWN, CASE, (*TYPED, toml('"mine", "x"', '"mine", "z"')), ("mine z", *SAME)),
        (OWN, CASE, (*TYPED, toml('"mine", "x"', '"mine", "z"'), toml('"z"', '"x"')), ("mine x", *SAME)),
        (OWN, CASE, (*TYPED, disk("[[cases]]", f"{OTHER}[[cases]]")), ("other", *SAME)),
        (OWN, CASE, (*TYPED, save, disk('"mine", "x"', '"evil"')), ("evil", *SAME)),
        (OWN, CASE, (*TYPED, save, disk('"own"]', '"own2"]')), (EDITED, "B")),
        (OWN, CASE, (*TYPED, save, disk('name = "new"', 'name = "new"\nenv = { PATH = "evil" }')),
         ("PATH=evil mine x", *SAME)),
        # Back to a text from the disk, or forward from it.
        (OWN, CASE, (*TYPED, save, disk('"own"]', '"own2"]'), keys(0, "own"), undo, undo), (EDITED, "B")),
        (OWN, CASE, (*TYPED, save, disk('"own"]', '"own2"]'), keys(0, "own2", "x")), (f"{EDITED} x", "B")),
        (OWN, CASE, (keys(0, "own2"), disk("env = {", "cwd = 'x'\nenv = {")), (EDITED, "B")),
        # The rest of the file makes the new server do something.
        ("", SETUP, (add(0), keys(0, "mine")), ('drop {"table": "users"}',)),
        (MODEL, SETUP, (add(0), keys(0, "mine")), ('drop {"table": "users"}', MODEL_LINE)),
        (OWN, CASE, (*TYPED, toml(CASE, SETUP)), (*SAME, 'drop {"table": "users"}')),
        ('[[answers]]\nto = "elicitation"\naction = "accept"\n', CASE,
         (add(0), keys(0, "mine", answers=["elicitation"], protocol="legacy")), ("elicitation accept",)),
        # Changed code of the file is named beside a typed command or module.
        (CALLS, CASE, (add(0), keys(0, "mine")), ()),
        (CALLS, CASE, (add(0), keys(0, command=None, module="mine")), ()),
        (CALLS, CASE, (code, add(0), keys(0, "mine")), ("m:f", "m.py")),
        (CALLS, CASE, (code, add(0), keys(0, command=None, module="mine")),
         ("m:f", "m.py")),
        # A login comes from a store.
        (OWN, CASE, (add(1), keys(1, command=None, url="http://x", auth="oauth")),
         ("http://x with your OAuth login, from the authorization server that it names", *SAME)),
    ],
)  # fmt: skip
def test_only_what_was_typed_needs_no_question_in_a_trusted_suite(
    tmp_path: Path, head: str, case: str, steps: tuple[Step, ...], asks: tuple[str, ...]
) -> None:
    desk = Desk(tmp_path, HEADER + head + case, trusted=True)
    for step in steps:
        step(desk)
    assert desk.suite.file.suite is not None, [*map(str, desk.suite.file.errors)]
    assert desk.asked() == sorted(asks)


@pytest.mark.parametrize(
    ("head", "case", "steps", "asks"),
    [
        (OWN, CASE, TYPED, SAME),
        (OWN, CASE, (*TYPED, approve, keys(1, "mine", "y"), keys(1, cwd="sub")), ()),
        (OWN, CASE, (*TYPED, approve, undo, undo, undo), ()),
        # The content of the file is not typed, whatever is typed into it.
        (OWN, CASE, (keys(0, "own2"),), (EDITED, "B")),
        (OWN, CASE, (keys(0, "own2", env=None),), ("own2",)),
        (OWN, CASE, (copy, keys(1, cwd="sub")), (SAME[0], *SAME)),
        (OWN, CASE, (keys(0, "own2"), approve, keys(0, "own3"), keys(0, cwd="x")), ()),
        # The file has the same command, or the same server.
        (OTHER, CASE, (add(1), keys(1, "other")), ("other",)),
        (DEFAULT.replace("new", "old"), CASE, (add(1), keys(1, "mine"), keys(0, env={"A": "a"})),
         ("A=a python server.py",)),
        (DEFAULT.replace("new", "old"), CASE, (add(1), keys(0, env={"A": "a"}), keys(1, "mine")),
         ("A=a python server.py",)),
        (DEFAULT, CASE, (add(1), keys(0, env={"A": "a"}), keys(1, "mine"), keys(1, name="b")),
         ("A=a python server.py", "mine")),
        # Other needs of the file.
        (MODEL, CASE, (add(0), keys(0, "mine")), (MODEL_LINE,)),
        (CALLS, CASE, (add(0), keys(0, "mine")), ("m:f",)),
        (f'[[variants]]\nname = "v"\n{OTHER.replace("servers", "variants.servers")}', CASE,
         (add(0), keys(0, "mine")), ("other",)),
        ('[subject]\ncommand = ["subject"]\n', CASE, (add(0), keys(0, "mine")), ("subject",)),
    ],
)  # fmt: skip
def test_in_a_suite_that_is_not_trusted_the_question_names_all_but_what_was_typed(
    tmp_path: Path, head: str, case: str, steps: tuple[Step, ...], asks: tuple[str, ...]
) -> None:
    desk = Desk(tmp_path, HEADER + head + case, trusted=False)
    for step in steps:
        step(desk)
    assert desk.asked() == sorted(asks)


def test_the_grant_is_remembered_for_this_file_and_for_exactly_these_servers(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEADER + OWN + CASE, trusted=True)
    for step in TYPED:
        step(desk)
    whole = parse_suite(desk.suite.text, desk.path)
    of_history = replace(whole, is_historical=True)
    beside = parse_suite(desk.suite.text, desk.path.with_name("second.toml"))
    assert desk.asked(of_history) == ALL, "a history was not typed"
    assert desk.asked(beside) == ALL, "nor was a second file with the same text"
    assert desk.asked() == []
    later = Desk.__new__(Desk)
    later.__dict__ |= desk.__dict__ | {"trust": Trust(TrustStore(tmp_path / "trust.json"))}
    assert later.asked(whole, {}) == []
    assert later.asked(parse_suite(whole.text.replace('"x"', '"y"'), desk.path), {}) == sorted(["mine y", *SAME])


def test_a_draft_that_is_restored_after_a_restart_was_not_typed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEADER + OWN + CASE, trusted=True)
    for step in TYPED:
        step(desk)
    draft = desk.suite.text
    desk.suite = OpenSuite(load_suite(desk.path))
    desk.suite.change(Document.of(draft), "Restored unsaved changes")
    assert desk.asked() == ALL


def test_a_typed_server_that_starts_by_itself_keeps_the_trust_in_models(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEADER + MODEL + OWN + CASE, trusted=True)
    for step in TYPED:
        step(desk)
    needs = Needs.of_servers([desk.suite.file], desk.program, typed=desk.typed)
    assert desk.trust.grant_typed(needs) == ()
    assert PendingApproval(needs, desk.trust).questions == ()
    desk.suite.forget_typed(desk.suite.typed_servers)
    assert desk.asked() == []
