"""Fields that a kind does not have."""

from typing import Any

import pytest

from pumice.api.schema.build import misspelt_fields
from pumice.testing import pod, pod_group, queue


def sentences(manifest: Any) -> list[str]:
    return [field.sentence for field in misspelt_fields(manifest)]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"minMembers": 1}, "there is no field spec.minMembers (did you mean spec.minMember?)"),
        (
            {"networkTopology": {"mod": "hard"}},
            "there is no field spec.networkTopology.mod (did you mean spec.networkTopology.mode?)",
        ),
        ({"subGroupPolicy": [{}, {"x": 1}]}, "there is no field spec.subGroupPolicy[1].x"),
        ({"colour": "red"}, "there is no field spec.colour"),
        ({3: 1}, "there is no field spec.3"),
    ],
)
def test_a_field_is_named_with_its_place_and_what_was_meant(spec: Any, sentence: str) -> None:
    assert sentences({**pod_group("g"), "spec": spec}) == [sentence]


def test_all_are_named_by_place() -> None:
    one = {**queue("q"), "spec": {"wieght": 1, "guarantee": {"b": 1, "a": 1}}, "Spec": {}}
    assert [field.path for field in misspelt_fields(one)] == [
        "Spec",
        "spec.guarantee.a",
        "spec.guarantee.b",
        "spec.wieght",
    ]


def test_names_of_users_a_status_metadata_and_kinds_without_rules_are_not_checked() -> None:
    group = pod_group("g", min_resources={"example.com/x": 1})
    group["status"] = {"newer": 1}
    group["metadata"]["newer"] = 1
    assert sentences(group) == []
    assert sentences({**pod("p"), "colour": "red"}) == []
