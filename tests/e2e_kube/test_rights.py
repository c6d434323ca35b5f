"""Rights are those that are used, by the API server's own audit log; run after all other tests."""

from typing import Any, Final

import pytest

from tests.e2e_kube.controlplane.audit import AuditLog
from tests.e2e_kube.granted import granted_rights
from tests.e2e_kube.untried_rights import BY_CHANCE, UNTRIED

_CACHED: Final = "pumice/e2e-rights"
_LIST, _WATCH = "list ", "watch "

Rights = dict[str, set[str]]


@pytest.fixture
def used(whole_suite: Any, request: pytest.FixtureRequest) -> Rights:
    """Return what each account did; also what it did in the run whose failures are tried again."""
    found: Rights = {}
    if request.config.getoption("lf"):
        earlier = request.config.cache.get(_CACHED, {})
        found = {account: set(rights) for account, rights in earlier.items()}
    for each in AuditLog(request.getfixturevalue("plane").audit_log, from_start=True).requests():
        if each.status != 403:
            found.setdefault(each.user, set()).add(each.right)
    shown = {account: sorted(rights) for account, rights in found.items()}
    request.config.cache.set(_CACHED, shown)
    return found


def test_every_right_is_used_or_listed_with_a_reason(used: Rights) -> None:
    """A list is granted with its watch: for servers without WatchList, and for lost watches."""
    unused = {
        f"{account}: {right}"
        for account, rights in granted_rights().items()
        for right in rights - used.get(account, set()) - {*UNTRIED.get(account, {}), *BY_CHANCE}
        if not (right.startswith(_LIST) and right.replace(_LIST, _WATCH, 1) in rights)
    }
    assert sorted(unused) == []


def test_only_rights_that_are_granted_and_not_used_are_listed(used: Rights) -> None:
    granted = granted_rights()
    wrong = {
        f"{account}: {right}"
        for account, reasons in UNTRIED.items()
        for right in reasons
        if right in used.get(account, set()) or right not in granted.get(account, set())
    }
    assert sorted(wrong) == []
