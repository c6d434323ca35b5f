"""Resource claims as a control plane changes them: made, freed and guarded."""

from typing import Any

import pytest

from pumice.api.devices import MOST_RESERVATIONS, POD_CLAIM_NAME
from pumice.cluster.embedded.claim_changes import check_claim_status, claim_from, with_made_claims
from pumice.errors import RejectedError

CLAIM = "ResourceClaim.resource.k8s.io"


def pod(name: str = "p", *templates: str, phase: str = "", uid: str = "u", **more: Any) -> Any:
    entries = [{"name": f"c{i}", "resourceClaimTemplateName": t} for i, t in enumerate(templates)]
    metadata = {"name": name, "namespace": "ns", **({"uid": uid} if uid else {})}
    status = {"phase": phase} if phase else {}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": entries},
        "status": {**status, **more},
    }


def template(name: str = "t", namespace: str | None = "ns", **metadata: Any) -> Any:
    place = {"name": name, **({"namespace": namespace} if namespace else {})}
    spec = {"metadata": metadata, "spec": {"devices": {}}}
    kind = "ResourceClaimTemplate"
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": place, "spec": spec}


def claim(name: str, **status: Any) -> Any:
    metadata = {"name": name, "namespace": "ns"}
    return {"kind": "ResourceClaim", "metadata": metadata, "status": status}


def test_a_claim_is_made_from_its_template_for_its_pod() -> None:
    given = template(labels={"a": "b"}, annotations={"k": "v"})
    made = claim_from(given, pod(), "c0", {"generateName": "p-c0-"})
    assert made == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "p-c0-",
            "namespace": "ns",
            "labels": {"a": "b"},
            "annotations": {"k": "v", POD_CLAIM_NAME: "c0"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": "p",
                    "uid": "u",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"devices": {}},
    }


def test_claims_of_all_pods_are_made_before_them() -> None:
    objects = [template(), pod("p", "t", "t"), pod("q", "absent"), pod("n", "t") | {"kind": "Node"}]
    made = with_made_claims(objects)
    assert [(one["kind"], one["metadata"]["name"]) for one in made] == [
        ("ResourceClaimTemplate", "t"),
        ("ResourceClaim", "p-c0"),
        ("ResourceClaim", "p-c1"),
        ("Pod", "p"),
        ("Pod", "q"),
        ("Node", "n"),
    ]
    assert made[3]["status"]["resourceClaimStatuses"] == [
        {"name": "c0", "resourceClaimName": "p-c0"},
        {"name": "c1", "resourceClaimName": "p-c1"},
    ]
    assert objects[1]["status"] == {}


def test_a_template_of_another_namespace_makes_nothing() -> None:
    manifest = pod("p", "t")
    assert with_made_claims([manifest], [template(namespace=None)]) == [manifest]
    assert with_made_claims([manifest]) == [manifest]


MANY = [{"uid": str(number)} for number in range(MOST_RESERVATIONS + 1)]


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ({}, {}, None),
        ({}, {"allocation": {"a": 1}}, None),
        ({"allocation": {"a": 1}}, {"allocation": {"a": 1}}, None),
        ({"allocation": {"a": 1}}, {}, None),
        ({"allocation": {"a": 1}}, {"allocation": {"a": 2}}, "field is immutable"),
        ({"allocation": {"a": 1}}, {"reservedFor": [{}]}, "may only be set if"),
        ({}, {"reservedFor": [{}]}, "may only be set if"),
        ({}, {"allocation": {"a": 1}, "reservedFor": MANY[1:]}, None),
        ({}, {"allocation": {"a": 1}, "reservedFor": MANY}, f"at most {MOST_RESERVATIONS} items"),
    ],
)
def test_a_status_that_cannot_be_is_refused(before: Any, after: Any, problem: str | None) -> None:
    one = claim("c", **before)
    check_claim_status("Pod", one, after)
    if problem is None:
        check_claim_status(CLAIM, one, after)
    else:
        with pytest.raises(RejectedError, match=problem):
            check_claim_status(CLAIM, one, after)
