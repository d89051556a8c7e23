"""Problems of a subject that is an agent, each with its place and its way out."""

from __future__ import annotations

from tests.suite.examples import parsed
from tests.suite.problems import assert_only_problem
from tests.tables import each_row

SUITE = 'format = 1\nname = "S"\n{subject}\n[[cases]]\nname = "C"\nuser = "Hi"\nexpect_no_calls = true\n'


@each_row(
    ("subject", "where", "says", "hint"),
    [
        ('[subject]\nagent = "codx" #!', "subject.agent", 'not the text "codx"', "did you mean `codex`?"),
        ('[subject]\nagent = "codex"\npython = "a:b" #!', "subject.python", "only one of", "remove one of them"),
        ('[subject]\ncommand = ["x"]\nmode = "plan" #!', "subject.mode", "`mode` needs `agent`", "remove it"),
        ('[subject] #!\nname = "x"', "subject", "needs one of `command`, `python`, `agent`, `acp`", ""),
        ('[subject]\nagent = "codex"\nbuiltin = "no" #!', "subject.builtin", "must be `off`, `forbid` or `allow`", ""),
        ('[subject]\nagent = "codex"\nacp = [""] #!', "subject.acp[0]", "must name a program", ""),
        ('[subject]\nagent = "codex"\nenv = { A = "$" } #!', "subject.env.A", "", ""),
    ],
)
def test_mistakes_in_an_agent_are_found_where_they_stand(subject: str, where: str, says: str, hint: str) -> None:
    assert_only_problem(SUITE.format(subject=subject), where, says, hint)


def test_an_agent_is_named_like_the_model_that_means_it() -> None:
    for subject, name in (('agent = "codex"', "agent:codex"), ('acp = ["x"]', "subject")):
        suite = parsed(SUITE.format(subject=f"[subject]\n{subject}")).suite
        assert suite is not None
        assert suite.subject is not None
        assert suite.subject.name == name
