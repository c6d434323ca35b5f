"""Objects that kubectl sends as protobuf."""

from typing import Any

import pytest

from pumice.apiserver.failures import RequestError
from pumice.apiserver.protobuf import MAGIC, read_object


def number(value: Any) -> Any:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(at: Any, value: Any) -> Any:
    """Write one field; a number as such, text and messages with their length."""
    if isinstance(value, int):
        return number(at << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(at << 3 | 2) + number(len(data)) + data


def pair(key: Any, value: Any) -> Any:
    return field(1, key) + field(2, value)


def sent(version: Any, kind: Any, *fields: Any, name: str = "x") -> Any:
    head = field(1, version) + field(2, kind)
    raw = field(1, field(1, name) + field(11, pair("app", "web"))) + b"".join(fields)
    return MAGIC + field(1, head) + field(2, raw) + field(4, "")


def test_a_config_map_is_read() -> None:
    assert read_object(
        sent("v1", "ConfigMap", field(2, pair("a", "b")), field(2, pair("c", "")))
    ) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "labels": {"app": "web"}},
        "data": {"a": "b", "c": ""},
    }


def test_a_secret_keeps_its_bytes_in_base64() -> None:
    made = read_object(sent("v1", "Secret", field(2, pair("k", b"\xff")), field(3, "Opaque")))
    assert (made["data"], made["type"]) == ({"k": "/w=="}, "Opaque")


def test_a_quota_has_amounts() -> None:
    hard = field(1, pair("cpu", field(1, "4")))
    made = read_object(sent("v1", "ResourceQuota", field(2, hard)))
    assert made["spec"] == {"hard": {"cpu": "4"}}


def test_a_priority_may_be_negative() -> None:
    negative = field(2, (1 << 64) - 5)
    made = read_object(sent("scheduling.k8s.io/v1", "PriorityClass", negative, field(3, 1)))
    assert (made["value"], made["globalDefault"]) == (-5, True)


def test_fields_that_are_not_known_are_passed_over() -> None:
    unknown = number(9 << 3 | 1) + b"12345678" + number(10 << 3 | 5) + b"1234"
    assert read_object(sent("v1", "Namespace", unknown))["metadata"]["name"] == "x"


def test_a_kind_that_is_not_known_is_asked_for_as_json() -> None:
    with pytest.raises(RequestError, match="Queue is not served") as caught:
        read_object(sent("scheduling.volcano.sh/v1beta1", "Queue"))
    assert caught.value.code == 415


def test_options_of_a_deletion_are_read() -> None:
    head = field(1, "apps/v1") + field(2, "DeleteOptions")
    raw = field(1, 0) + field(2, field(1, "some-uid")) + field(4, "Background") + field(5, "All")
    assert read_object(MAGIC + field(1, head) + field(2, raw)) == {
        "apiVersion": "apps/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "some-uid"},
        "propagationPolicy": "Background",
        "dryRun": ["All"],
    }


def test_a_deployment_is_read_whole() -> None:
    request = pair("cpu", field(1, "500m"))
    mounted = field(1, "data") + field(2, field(2, b""))  # a source of fields of the volume itself
    container = field(1, "c") + field(2, "image") + field(8, field(2, request))
    spec = field(1, mounted) + field(2, container) + field(4, 0) + field(11, 0)
    template = field(1, field(11, pair("app", "web"))) + field(2, spec)
    update = field(1, field(1, 1) + field(3, "25%")) + field(2, field(2, 3))
    strategy = field(1, "RollingUpdate") + field(2, update)
    whole = field(1, 0) + field(3, template) + field(4, strategy) + field(5, 0)
    made = read_object(sent("apps/v1", "Deployment", field(2, whole), field(3, b"")))
    assert made["spec"] == {
        "replicas": 0,  # unlike minReadySeconds it may be left out, so it was sent on purpose
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "volumes": [{"name": "data", "emptyDir": {}}],
                "containers": [
                    {"name": "c", "image": "image", "resources": {"requests": {"cpu": "500m"}}}
                ],
                "terminationGracePeriodSeconds": 0,
            },
        },
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 3},
        },
    }
    assert "status" not in made


def test_times_and_json_are_read() -> None:
    lease = field(2, field(1, "me") + field(3, field(1, 1_767_268_800) + field(2, 5_000)))
    made = read_object(sent("coordination.k8s.io/v1", "Lease", lease))
    assert made["spec"]["acquireTime"] == "2026-01-01T12:00:00.000005Z"
    revision = read_object(
        sent("apps/v1", "ControllerRevision", field(2, field(1, '{"a": [1]}')), field(3, 7))
    )
    assert (revision["data"], revision["revision"]) == ({"a": [1]}, 7)


@pytest.mark.parametrize("data", [sent("v1", "Namespace")[:-4], MAGIC + b"\x0b", MAGIC + b"\x80"])
def test_a_body_that_is_cut_off_is_a_bad_request(data: Any) -> None:
    with pytest.raises(RequestError) as caught:
        read_object(data)
    assert caught.value.code == 400
