"""Requests to models of suites and of the settings beside them need trust. The user's own models need none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.programs import folders_in, program_of
from workbench.config.model_book import ModelOptions
from workbench.config.program import Program, create_program
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.evaluation.approval import Needs, can_run_on_mocks, models_to_approve, needs_of
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.suite.trust import ModelNeed, SuiteNeeds, TrustStore, needs_trust
from workbench.tools.listings import StoredListings

CASE = '[[cases]]\nname = "A"\nuser = "Do it."\nexpect_no_calls = true\n'
SUITE = 'format = 1\nname = "S"\n{head}\n' + CASE
LOCAL = '[models.local]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\nmodel = "llama"\n'
SERVER = '[[servers]]\nname = "s"\ncommand = ["srv"]\n'


def suite(folder: Path, head: str = "", case: str = "") -> SuiteFile:
    file = folder / "suite.toml"
    file.write_text(SUITE.format(head=head) + case, encoding="utf-8")
    return load_suite(file)


def settings(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "workbench.toml").write_text(text, encoding="utf-8")


def planned(file: SuiteFile, *models: str) -> tuple[PlannedRun, ...]:
    return plan_runs([file], models=models)


def specs_of(program: Program) -> ModelSpecs:
    return ModelSpecs(program.models, program.environment)


def must_ask(runs: Sequence[PlannedRun], program: Program) -> bool:
    (request,) = Needs.of_runs(runs, program).requests
    return request.must_ask


@pytest.fixture
def program(tmp_path: Path) -> Program:
    settings(tmp_path / "config", LOCAL.replace("local]", "mine]"))
    return program_of(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    return folder


def test_every_model_that_a_suite_its_cases_or_its_settings_name_is_listed(folder: Path, program: Program) -> None:
    settings(folder, LOCAL)
    file = suite(folder, 'models = ["offline", "mine", "nowhere"]', 'models = ["openai:gpt"]\n')
    needs = needs_of(file, specs_of(program))
    assert needs.models == (
        ModelNeed("gpt", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ModelNeed("llama", "http://localhost:1/v1"),
    )
    assert needs.lines(needs.models) == (
        "ask the model gpt at https://api.openai.com/v1 with the key in OPENAI_API_KEY",
        "ask the model llama at http://localhost:1/v1",
    )


def test_models_that_the_batch_does_not_ask_share_one_line(folder: Path, program: Program) -> None:
    settings(folder, LOCAL + LOCAL.replace("local]", "b]").replace("llama", "qwen"))
    file = suite(folder, 'models = ["local", "openai:gpt"]')
    needs = needs_of(file, specs_of(program))
    asked = models_to_approve(planned(file, "local"), specs_of(program))
    assert needs.lines(asked) == (
        "ask the model llama at http://localhost:1/v1",
        "ask, if chosen, 2 more models: gpt at https://api.openai.com/v1 with the key in OPENAI_API_KEY; "
        "qwen at http://localhost:1/v1",
    )
    assert needs.lines(models_to_approve(planned(file, "offline"), specs_of(program))) == (
        "ask, if chosen, 3 models: gpt at https://api.openai.com/v1 with the key in OPENAI_API_KEY; "
        "llama, qwen at http://localhost:1/v1",
    )


def test_the_offline_model_and_the_users_own_need_no_trust(folder: Path, program: Program) -> None:
    assert needs_of(suite(folder, 'models = ["offline", "mine", "replay:x.jsonl"]'), specs_of(program)).nothing


def test_trust_ends_when_an_address_a_key_or_a_model_changes(folder: Path, program: Program) -> None:
    seen = set()
    for old, new in ((":1/", ":1/"), (":1/", ":2/"), ('"llama"', '"qwen"'), ("\nmodel", '\napi_key_env = "K"\nmodel')):
        settings(folder, LOCAL.replace(old, new))
        seen.add(needs_of(suite(folder), specs_of(program)).fingerprint)
    assert len(seen) == 4


def test_what_was_trusted_before_models_counted_stays_trusted(folder: Path, program: Program, tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    file = suite(folder, SERVER)
    assert file.suite is not None
    store.trust(file.path, needs_trust(file.suite, file.path))
    assert store.is_trusted(file.path, needs_of(load_suite(file.path), specs_of(program)))
    settings(folder, LOCAL)
    assert not store.is_trusted(file.path, needs_of(file, specs_of(program)))


def test_a_suite_that_needs_only_models_is_asked_about_only_when_they_are_used(folder: Path, program: Program) -> None:
    settings(folder, LOCAL)
    file = suite(folder, 'models = ["local"]')
    assert must_ask(planned(file), program)
    assert must_ask(planned(file, "offline", "local"), program)
    assert not must_ask(planned(file, "offline"), program)
    assert not must_ask(planned(file, "mine"), program)
    assert not must_ask(planned(file, "openai:gpt"), program)


def test_an_address_of_the_command_line_makes_a_projects_model_the_users(folder: Path, tmp_path: Path) -> None:
    settings(folder, LOCAL)
    file = suite(folder, 'models = ["local"]')
    options = ModelOptions(frozenset({"local"}), base_url="http://localhost:9/v1")
    moved = create_program(folders_in(tmp_path), {}, options)
    assert not must_ask(planned(file, "local"), moved)
    assert must_ask(planned(file), moved)


def test_a_suite_that_starts_something_is_asked_about_on_any_model(folder: Path, program: Program) -> None:
    assert must_ask(planned(suite(folder, SERVER), "offline"), program)


def test_a_suite_of_which_nothing_runs_is_not_asked_about(folder: Path, program: Program) -> None:
    skipped = CASE.replace('"A"', '"B"') + 'skip = "later"\n'
    mixed = planned(suite(folder, SERVER, skipped))
    assert not must_ask([run for run in mixed if run.case.skip], program)
    assert must_ask(mixed, program)


def test_broken_settings_need_nothing_since_nothing_can_be_asked(folder: Path, program: Program) -> None:
    settings(folder, "[models.local]\n")
    assert needs_of(suite(folder, 'models = ["local"]'), specs_of(program)) == SuiteNeeds(folder)


def test_mocks_will_do_where_the_tools_of_every_server_are_remembered(folder: Path, program: Program) -> None:
    settings(folder, LOCAL)
    file = suite(folder, SERVER)
    listings = StoredListings(folder / "listings")
    assert not can_run_on_mocks(file, (), listings)
    assert file.suite is not None
    listings.remember(file.path, file.suite.servers[0], ())
    assert can_run_on_mocks(file, (), listings)
    named = suite(folder, 'models = ["local"]\n' + SERVER)
    assert not can_run_on_mocks(named, models_to_approve(planned(named), specs_of(program)), listings)
    assert not can_run_on_mocks(suite(folder), (), listings)
