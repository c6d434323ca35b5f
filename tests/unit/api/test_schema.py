"""The declaration of the kinds: well-formed, and what is made from it agrees."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import msgspec
import pytest

from pumice.api.groups import PodGroup, Queue
from pumice.api.meta import Part
from pumice.api.nodes import HyperNode, Numatopology
from pumice.api.schema.build import CHECKED_KINDS, Node, declared_schema, misspelt_fields, schema_of
from pumice.api.schema.grammar import Field, GoType, _declarations, fields_of, go_type, struct_of
from pumice.testing import pod, pod_group, queue

TEXTS = """
batch.ConcurrencyPolicy batch.Iteration batch.JobPhase batch.NetworkTopologyMode
batch.NumaPolicy bus.Action bus.Event flow.Phase flow.RetainPolicy meta.ConditionStatus
meta.LabelSelectorOperator scheduling.DequeueStrategy scheduling.NetworkTopologyMode
scheduling.PodGroupConditionType scheduling.PodGroupPhase scheduling.QueueState
topology.MemberType types.UID v1.AppArmorProfileType v1.AzureDataDiskCachingMode
v1.AzureDataDiskKind v1.Capability v1.ConditionStatus v1.ContainerRestartPolicy
v1.ContainerRestartRuleAction v1.ContainerRestartRuleOnExitCodesOperator v1.DNSPolicy
v1.HostPathType v1.MountPropagationMode v1.NodeInclusionPolicy v1.NodeSelectorOperator v1.OSName
v1.PersistentVolumeAccessMode v1.PersistentVolumeMode v1.PodConditionType
v1.PodFSGroupChangePolicy v1.PodSELinuxChangePolicy v1.PreemptionPolicy v1.ProcMountType
v1.Protocol v1.PullPolicy v1.RecursiveReadOnlyMode v1.ResourceName
v1.ResourceResizeRestartPolicy v1.RestartPolicy v1.SeccompProfileType v1.Signal v1.StorageMedium
v1.SupplementalGroupsPolicy v1.TaintEffect v1.TerminationMessagePolicy v1.TolerationOperator
v1.URIScheme v1.UnsatisfiableConstraintAction
"""
SCALARS = {
    "string", "bool", "int", "int32", "int64", "Quantity", "Duration", "Time", "IntOrString", "any",
}  # fmt: skip
MARKS = {"kind", "like", "atomic", "exclusive"}


def _checked(kind: str) -> Any:
    return schema_of(kind)


def types_in(notation: str) -> Iterator[GoType]:
    """Yield a type and the types inside it."""
    expected = go_type(notation)
    yield expected
    if expected.element:
        yield from types_in(expected.element)


def declared() -> Iterator[tuple[str, Field]]:
    for name in _declarations():
        for field in fields_of(name).values():
            yield name, field


def test_every_name_of_a_type_is_a_struct_a_scalar_or_a_known_kind_of_text() -> None:
    found = {
        (each.kind, each.notation)
        for _, field in declared()
        for each in types_in(field.type.notation)
        if each.kind not in ("struct", "list", "map")
    }
    assert {kind for kind, _ in found} <= SCALARS
    assert {notation for _, notation in found if "." in notation} == set(TEXTS.split())


def test_every_rule_says_something_about_a_place_of_a_schema() -> None:
    known = {each.name for each in fields(Node)} | {"bare"}
    assert {rule for _, field in declared() for rule in field.rules} <= known


def test_every_struct_is_used_and_every_mark_is_known() -> None:
    used = {each.notation for _, field in declared() for each in types_in(field.type.notation)}
    unused = set(_declarations()) - used
    assert unused == {name for name in unused if "kind" in struct_of(name).marks} | {"v1.Pod"}
    marks = {mark for name in _declarations() for mark in struct_of(name).marks}
    assert {mark for mark in marks if "." not in mark} == MARKS


def test_a_field_is_read_with_its_rules() -> None:
    field = fields_of("batch.CronJobSpec")["concurrencyPolicy"]
    assert field.rules == {
        "enum": ("Allow", "Forbid", "Replace"),
        "has_default": True,
        "default": "Allow",
    }
    assert field.description == "What to do if the one before still runs."
    assert (field.written, field.required) == ("filled", False)
    assert fields_of("batch.CronJobSpec")["schedule"].required
    assert not fields_of("scheduling.QueueStatus")["allocated"].required
    assert fields_of("topology.HyperNodeSpec")["tier"].required
    assert fields_of("v1.LocalObjectReference")["name"].rules["default"] == ""
    assert fields_of("batch.CronJobSpec")["suspend"].rules["default"] is False
    assert fields_of("scheduling.QueueSpec")["weight"].rules["maximum"] == 65535


def test_a_struct_may_have_the_fields_of_another() -> None:
    assert [*fields_of("v1.EphemeralContainer")] == [
        *fields_of("v1.Container"),
        "targetContainerName",
    ]


def test_a_patch_of_a_flow_has_no_defaults() -> None:
    """Otherwise it would overwrite the template with unwritten values."""
    flows = _checked("JobFlow.flow.volcano.sh").properties["spec"].properties["flows"].items
    spec = flows.properties["patch"].properties["jobSpec"].properties
    assert [name for name, part in spec.items() if part.has_default] == []


@pytest.mark.parametrize("kind", CHECKED_KINDS)
def test_the_head_of_an_object_comes_first(kind: str) -> None:
    assert [*_checked(kind).properties][:3] == ["kind", "apiVersion", "metadata"]


def parts_in(annotation: Any) -> Iterator[type[Part]]:
    """Yield the structs inside a type such as ``tuple[X, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from parts_in(inner)


def missing(read: Any, node: Any, path: str) -> Iterator[str]:
    """Yield the fields that the scheduler reads and the declaration does not know."""
    while node.items or node.values:
        node = node.items or node.values
    for field in msgspec.structs.fields(read):
        name = field.encode_name
        if name == "metadata":
            continue
        if name not in (node.properties or {}):
            yield f"{path}.{name}"
            continue
        for part in parts_in(field.type):
            yield from missing(part, node.properties[name], f"{path}.{name}")


@pytest.mark.parametrize(
    ("read", "group"),
    [
        (PodGroup, "scheduling"),
        (Queue, "scheduling"),
        (HyperNode, "topology"),
        (Numatopology, "nodeinfo"),
    ],
)
def test_every_field_that_the_scheduler_reads_is_declared(read: Any, group: str) -> None:
    node = declared_schema(f"{read.__name__}.{group}.volcano.sh")
    assert [*missing(read, node, "")] == []


def sentences(manifest: Any) -> list[str]:
    return [field.sentence for field in misspelt_fields(manifest)]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"minMembers": 1}, "unknown field spec.minMembers; did you mean spec.minMember?"),
        (
            {"networkTopology": {"mod": "hard"}},
            "unknown field spec.networkTopology.mod; did you mean spec.networkTopology.mode?",
        ),
        ({"subGroupPolicy": [{}, {"x": 1}]}, "unknown field spec.subGroupPolicy[1].x"),
        ({"colour": "red"}, "unknown field spec.colour"),
        ({3: 1}, "unknown field spec.3"),
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
