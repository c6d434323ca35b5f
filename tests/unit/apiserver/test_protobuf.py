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
    with pytest.raises(RequestError, match="Deployment is not served") as caught:
        read_object(sent("apps/v1", "Deployment"))
    assert caught.value.code == 415


@pytest.mark.parametrize("data", [sent("v1", "Namespace")[:-4], MAGIC + b"\x0b", MAGIC + b"\x80"])
def test_a_body_that_is_cut_off_is_a_bad_request(data: Any) -> None:
    with pytest.raises(RequestError) as caught:
        read_object(data)
    assert caught.value.code == 400
