"""Paths, bodies and refusals of the Kubernetes REST API."""

from typing import Any

import pytest

from pumice.cluster.kube.paths import binding, delete_options, kind_named, path_of, refusal
from pumice.errors import (
    AlreadyExistsError,
    ConflictError,
    GoneError,
    NamespaceTerminatingError,
    NotFoundError,
    QuotaExceededError,
    RejectedError,
    UnauthorizedError,
    UnavailableError,
)


@pytest.mark.parametrize(
    ("place", "path"),
    [
        (("Pod",), "/api/v1/pods"),
        (("Pod", "ns"), "/api/v1/namespaces/ns/pods"),
        (("Pod", "ns", "p"), "/api/v1/namespaces/ns/pods/p"),
        (("Pod", "ns", "p", "status"), "/api/v1/namespaces/ns/pods/p/status"),
        (("Pod", "a/b", "x/../y"), "/api/v1/namespaces/a%2Fb/pods/x%2F..%2Fy"),
        (("Node", "ns", "n"), "/api/v1/nodes/n"),
        (
            ("Queue.scheduling.volcano.sh", "", "q.r-1"),
            "/apis/scheduling.volcano.sh/v1beta1/queues/q.r-1",
        ),
        (
            ("Job.batch.volcano.sh", "ns", "j"),
            "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j",
        ),
    ],
)
def test_the_path_of_an_object(place: tuple[str, ...], path: str) -> None:
    assert path_of(*place) == path


@pytest.mark.parametrize("step", [".", ".."])
def test_no_name_is_a_step_of_a_path(step: str) -> None:
    for place in (("Pod", step), ("Pod", "default", step), ("Node", "", step)):
        with pytest.raises(RejectedError, match="a step of a path"):
            path_of(*place)


def test_a_kind_that_is_unknown_is_refused() -> None:
    assert kind_named("Pod").plural == "pods"
    with pytest.raises(RejectedError, match="expected a known kind"):
        kind_named("Strange")


@pytest.mark.parametrize("uid", ["", "u"])
def test_the_body_of_a_binding(uid: str) -> None:
    metadata = {"name": "p", "namespace": "ns", "annotations": {"k": "v"}}
    assert binding("ns", "p", "n", {"k": "v"}, uid) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {**metadata, "uid": uid} if uid else metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }


@pytest.mark.parametrize(
    ("grace_s", "uid", "more"),
    [
        (None, "", {}),
        (0, "", {"gracePeriodSeconds": 0}),
        (5, "u", {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}}),
    ],
)
def test_the_body_of_a_deletion(grace_s: int | None, uid: str, more: Any) -> None:
    assert delete_options(grace_s, "Foreground", uid) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        **more,
    }


OVER_QUOTA = (
    'pods "x" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=2, limited: cpu=2'
)
TERMINATING = {"causes": [{"reason": "NamespaceTerminating"}]}


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        ({"reason": "AlreadyExists"}, 409, AlreadyExistsError),
        ({"reason": "Conflict"}, 409, ConflictError),
        ({"reason": "Expired"}, 410, GoneError),
        ({"reason": "NotFound"}, 404, NotFoundError),
        ({"reason": "Timeout"}, 504, UnavailableError),
        ({"reason": "Forbidden"}, 403, RejectedError),
        ({"reason": "Forbidden", "details": TERMINATING}, 403, NamespaceTerminatingError),
        ({"reason": "Forbidden", "message": OVER_QUOTA}, 403, QuotaExceededError),
        ({"reason": "Forbidden", "message": "exceeded quota: x"}, 403, RejectedError),
        ({"reason": "Forbidden", "details": {"causes": ["odd", {}]}}, 403, RejectedError),
        ({"reason": "Forbidden", "details": {"causes": None}}, 403, RejectedError),
        ({"reason": "Forbidden", "details": "odd"}, 403, RejectedError),
        ({"code": 410}, 0, GoneError),
        ({"code": 410}, 404, NotFoundError),
        ({}, 401, UnauthorizedError),
        ({}, 409, ConflictError),
        ({}, 429, UnavailableError),
        ({}, 499, RejectedError),
        ({}, 500, UnavailableError),
        ({}, 0, RejectedError),
        ("a page of a proxy", 502, UnavailableError),
        (None, 404, NotFoundError),
        ([], 400, RejectedError),
    ],
)
def test_a_refusal_is_the_error_of_its_reason_or_of_its_code(
    status: Any, code: int, error: type[Exception]
) -> None:
    made = refusal(status, ("Pod", "ns", "p"), code)
    assert type(made) is error
    assert (made.kind, made.namespace, made.name) == ("Pod", "ns", "p")


def test_a_refusal_has_the_words_of_the_server() -> None:
    made = refusal({"message": "no"}, ("Pod", "ns", "p"), 400)
    assert (made.problem, made.verbatim) == ("no", True)
    silent = refusal({}, ("Pod", "ns", "p"), 400)
    assert silent.problem == "the server answered with 400 and no message"
    assert refusal({"code": 410}, ("Pod", "", "")).problem.startswith(
        "the server answered with 410"
    )
