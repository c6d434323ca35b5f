"""The configuration of a served cluster is in Volcano's ConfigMap and may be edited there."""

from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.apiserver.served_cluster import KEY, NAME, NAMESPACE, SchedulerConfigMap
from pumice.serve.embedded import EmbeddedControlPlane

OTHER = 'actions: "allocate"\ntiers: []\n'


@pytest.fixture
def plane() -> Any:
    made = EmbeddedControlPlane(parse_conf(DEFAULT_CONF))
    conf = SchedulerConfigMap(made.cluster, made, DEFAULT_CONF)
    made.on_cycle.append(conf.follow)
    conf.publish()
    return made


def edit(plane: Any, text: Any) -> Any:
    plane.cluster.patch("ConfigMap", NAMESPACE, NAME, {"data": {KEY: text}})
    plane.step()
    return [event["reason"] for event in plane.cluster.list("Event", NAMESPACE)[0]]


def test_it_says_what_is_used(plane: Any) -> None:
    assert plane.cluster.get("ConfigMap", NAMESPACE, NAME)["data"] == {KEY: DEFAULT_CONF}


def test_an_edit_holds_from_the_next_cycle(plane: Any) -> None:
    assert edit(plane, OTHER) == ["Reloaded"]
    assert plane.scheduler.scheduler.conf.actions == ("allocate",)


def test_the_event_of_an_edit_names_settings_without_effect(plane: Any) -> None:
    edit(plane, 'actions: "allocate"\ntiers:\n- plugins:\n  - {name: sla, arguments: {x: 1}}\n')
    (event,) = plane.cluster.list("Event", NAMESPACE)[0]
    assert event["message"].startswith("actions: allocate; line 4: x: ")


@pytest.mark.parametrize("text", ["actions: [", 'actions: "alocate"\n'])
def test_an_edit_that_cannot_be_used_changes_nothing(plane: Any, text: str) -> None:
    before = plane.scheduler.scheduler
    assert edit(plane, text) == ["InvalidConfiguration"]
    assert plane.scheduler.scheduler is before


def test_one_that_is_there_from_the_start_counts() -> None:
    plane = EmbeddedControlPlane(parse_conf(DEFAULT_CONF))
    metadata = {"name": NAME, "namespace": NAMESPACE}
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: OTHER}}
    plane.cluster.create(given)
    SchedulerConfigMap(plane.cluster, plane, DEFAULT_CONF).publish()
    assert plane.scheduler.scheduler.conf.actions == ("allocate",)
