"""Roles grant exactly the calls that are made."""

from typing import Any

import pytest

from deploy.rbac import ADMISSION, CONTROLLERS, SCHEDULER, Grant, admission_init, rules
from deploy.workloads import permissions
from pumice.api.kinds import BUILT_IN
from pumice.api.objects import FOLLOWED
from tests.unit.deploy.broad_run import broad_run

COMPONENTS = (SCHEDULER, CONTROLLERS, ADMISSION, admission_init("certificate", ["one", "two"]))


@pytest.fixture(scope="module")
def recorded() -> Any:
    stage = broad_run()
    return {SCHEDULER: stage.scheduler.calls, CONTROLLERS: stage.controllers.calls}


def granted(component: Any) -> Any:
    return set().union(*(grant.calls() for grant in component.grants()))


@pytest.mark.parametrize("component", [SCHEDULER, CONTROLLERS], ids=lambda one: one.name)
def test_every_call_that_is_made_is_granted(recorded: Any, component: Any) -> None:
    assert recorded[component] - granted(component) == set()


@pytest.mark.parametrize("component", [SCHEDULER, CONTROLLERS], ids=lambda one: one.name)
def test_every_grant_is_used_or_says_why_it_is_there(recorded: Any, component: Any) -> None:
    unused = {
        call
        for grant in component.grants()
        if not grant.unseen
        for call in grant.calls() - recorded[component]
    }
    assert unused == set()


@pytest.mark.parametrize("component", [SCHEDULER, CONTROLLERS], ids=lambda one: one.name)
def test_a_grant_that_is_used_makes_no_excuse(recorded: Any, component: Any) -> None:
    excused = {
        call
        for grant in component.grants()
        if grant.unseen
        for call in grant.calls() & recorded[component]
    }
    assert excused == set()


def test_nothing_went_wrong_in_the_recorded_run() -> None:
    assert [*broad_run().loop.failures] == []


def test_the_scheduler_may_read_every_kind_it_follows() -> None:
    plurals = {kind.name: (kind.group, kind.plural) for kind in BUILT_IN}
    wanted = {(verb, *plurals[kind]) for kind in FOLLOWED for verb in ("list", "watch")}
    assert wanted <= granted(SCHEDULER)


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda one: one.name)
def test_no_role_for_the_whole_cluster_reaches_secrets(component: Any) -> None:
    assert [one for one in component.everywhere if "secrets" in one.resources] == []


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda one: one.name)
def test_nobody_may_list_secrets_or_change_roles_or_use_a_star(component: Any) -> None:
    for verb, group, resource in granted(component):
        assert "*" not in (verb, group, resource)
        assert group != "rbac.authorization.k8s.io"
        assert verb not in {"impersonate", "bind", "escalate", "deletecollection"}
        assert (verb, resource) not in {("list", "secrets"), ("watch", "secrets")}


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda one: one.name)
def test_names_narrow_only_calls_that_name_an_object(component: Any) -> None:
    """The API server does not know the name when an object is created or a kind is listed."""
    for grant in component.grants():
        if grant.names:
            assert not {"create", "list", "watch"} & {*grant.verbs}


def test_lines_about_the_same_resource_become_one_rule() -> None:
    lines = [
        Grant("", ("pods", "nodes"), ("list",)),
        Grant("", ("pods",), ("delete",)),
        Grant("", ("leases",), ("get",), names=("mine",)),
    ]
    assert rules(lines) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["leases"], "resourceNames": ["mine"], "verbs": ["get"]},
    ]


def test_secrets_of_jobs_are_granted_in_named_namespaces_only() -> None:
    roles = [one for one in permissions(CONTROLLERS) if one["kind"] == "Role"]
    where = {
        role["metadata"]["namespace"]
        for role in roles
        if any(
            "secrets" in rule["resources"] and "resourceNames" not in rule for rule in role["rules"]
        )
    }
    assert where == {"default"}


def test_the_one_other_secret_that_controllers_may_read_is_named() -> None:
    grants = [one for one in CONTROLLERS.at_home if "secrets" in one.resources]
    assert [(one.verbs, one.names) for one in grants] == [(("get",), ("ufm-credentials",))]
