"""What a Python caller approves: nothing, all, or what a function says."""

from __future__ import annotations

from collections.abc import Callable

from workbench.api.errors import ApprovalError
from workbench.api.standing import StandingApproval
from workbench.config.program import Program
from workbench.evaluation.approval import Approval, Needs, Trust
from workbench.evaluation.plan import trust_store
from workbench.suite.trust import SuiteNeeds

Approve = Callable[[SuiteNeeds], bool]
"""Decides about a suite: whether it may do all that it needs. `str` of a need says what it is, as does `lines()`."""


def approve_nothing(needs: SuiteNeeds) -> bool:
    """Approve nothing: suites that would start a process, import a file, or send anything to an address that the
    caller did not name are refused."""
    return False


def ALL(needs: SuiteNeeds) -> bool:  # noqa: N802 (it is used like a constant: approve=workbench.ALL)
    """Approve whatever the suites need. Say this of suites that you have read or written."""
    return True


def TRUSTED(needs: SuiteNeeds) -> bool:  # noqa: N802
    """Approve what the user has trusted for good, in the app or on the command line. That is remembered for each suite,
    so it has to be given as it is, `approve=workbench.TRUSTED`: a call of this function alone approves nothing."""
    return False


def approval_for(needs: Needs, approve: Approve, program: Program) -> Approval:
    """Ask about each suite that needs something. Raises ApprovalError with all that is not approved."""
    asked = [request for request in needs.requests if request.must_ask]
    if isinstance(approve, StandingApproval):
        approve.check(needs, program)
        refused = []
    elif approve is TRUSTED:
        trust = Trust(trust_store(program.folders))
        refused = [request for request in asked if not trust.covers(request)]
    else:
        refused = [request for request in asked if not approve(request.needs)]
    if refused:
        raise ApprovalError(
            (str(request.file.path), request.needs, [*map(program.secrets.redact, request.needs.lines(request.asked))])
            for request in refused
        )
    return needs.approved({request.file.path for request in asked})
