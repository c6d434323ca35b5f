"""Cells of tables: what kubectl prints for the objects that matter here."""

from typing import Any

import pytest

from pumice.api.kinds import Kinds
from pumice.api.times import age
from pumice.apiserver.columns import Form, many, wanted_form
from tests.present import present

NOW = 1767225600.0  # 2026-01-01T00:00:00Z
MADE = {"name": "x", "creationTimestamp": "2025-12-31T23:59:00Z"}


def cells(kind: Any, **fields: Any) -> Any:
    """Return the cells of one object by the name of their column."""
    known = present(Kinds().get(kind))
    table = many([{"metadata": dict(MADE), **fields}], known, Form("Table"), NOW, {})
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


def container(**state: Any) -> Any:
    return {"name": "c", "ready": "running" in state, "restartCount": 2, "state": state}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "NodeLost"}, "NodeLost"),
        ({"phase": "Running", "containerStatuses": [container(running={})]}, "Running"),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [container(terminated={"reason": "Completed"})],
            },
            "Completed",
        ),
        ({"containerStatuses": [container(waiting={"reason": "ErrImagePull"})]}, "ErrImagePull"),
    ],
)
def test_a_pod_says_its_state_in_one_word(status: Any, word: str) -> None:
    assert cells("Pod", spec={"containers": [{}]}, status=status)["Status"] == word


def test_a_pod_that_goes_is_terminating() -> None:
    leaving = {**MADE, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    made = cells("Pod", metadata=leaving, status={"phase": "Running"})
    assert made["Status"] == "Terminating"


def test_a_pod_counts_ready_containers_and_restarts() -> None:
    status = {"phase": "Running", "containerStatuses": [container(running={})]}
    made = cells("Pod", spec={"containers": [{}, {}], "nodeName": "n1"}, status=status)
    assert (made["Ready"], made["Restarts"], made["Node"], made["Age"]) == ("1/2", 2, "n1", "60s")


def test_a_node_says_whether_it_takes_pods() -> None:
    conditions = [{"type": "Ready", "status": "False"}]
    labels = {"node-role.kubernetes.io/gpu": ""}
    made = cells(
        "Node",
        metadata={**MADE, "labels": labels},
        spec={"unschedulable": True},
        status={"conditions": conditions},
    )
    assert (made["Status"], made["Roles"]) == ("NotReady,SchedulingDisabled", "gpu")


@pytest.mark.parametrize("status", [{"conditions": [{}]}, {"conditions": [5]}, {"conditions": 5}])
def test_an_odd_object_spoils_only_its_own_row(status: Any) -> None:
    assert cells("Node", status=status)["Status"] == "<invalid>"


def test_an_event_says_when_and_about_what() -> None:
    about = {"kind": "Pod", "name": "p"}
    made = cells("Event", involvedObject=about, lastTimestamp="2025-12-31T23:00:00Z")
    assert (made["Last Seen"], made["Object"]) == ("60m", "pod/p")
    assert cells("Event")["Last Seen"] == "<unknown>"


def test_a_job_and_a_podgroup_have_the_columns_of_volcano() -> None:
    job = cells("Job.batch.volcano.sh", status={"state": {"phase": "Running"}, "running": 3})
    assert (job["STATUS"], job["RUNNINGS"]) == ("Running", 3)
    group = cells("PodGroup.scheduling.volcano.sh", spec={"minMember": 2, "queue": "q"})
    assert (group["minMember"], group["QUEUE"]) == (2, "q")


def test_a_kind_without_columns_has_name_and_age() -> None:
    assert cells("Lease.coordination.k8s.io") == {"Name": "x", "Age": "60s"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    {0: "0s", 119: "119s", 150: "2m30s", 700: "11m", 4 * 3600 + 60: "4h1m", 9 * 3600: "9h"}.items(),
)
def test_ages_have_at_most_two_units(seconds: Any, text: Any) -> None:
    assert age("2026-01-01T00:00:00Z", NOW + seconds) == text


def test_days_are_counted() -> None:
    assert age("2025-12-29T00:00:00Z", NOW + 3600) == "3d1h"
    assert age("2025-01-01T00:00:00Z", NOW) == "365d"


@pytest.mark.parametrize(
    ("accept", "kind"),
    {
        "application/json": "",
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json": "Table",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1": "PartialObjectMetadata",
        "application/json;as=Other,application/json": "",
        "application/json;as=Other": "",
    }.items(),
)
def test_the_first_form_that_is_known_is_given(accept: Any, kind: Any) -> None:
    assert wanted_form(accept).kind == kind


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({}, "pending"),
        ({"allocation": {"devices": {}}}, "allocated"),
        ({"allocation": {"devices": {}}, "reservedFor": [{"name": "p"}]}, "allocated,reserved"),
    ],
)
def test_a_resource_claim_says_how_far_it_is(status: Any, word: str) -> None:
    assert cells("ResourceClaim.resource.k8s.io", status=status)["State"] == word
