"""Whatever is sent as an object gets an answer: allowed, or denied with a message."""

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pumice.api.schema.grammar import fields_of, go_type
from pumice.testing.recorded.admission import _World
from pumice.webhooks.admission_chain import KINDS, Chain
from pumice.webhooks.admission_review import answer_review
from pumice.webhooks.files import Files, is_checked
from pumice.webhooks.lint import lint_object
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import Options, ResourceGroup

WORLD = _World([])
OPTIONS = Options(resource_groups=(ResourceGroup(name="a", labels={"x": "y"}),), gate_pods=True)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1", "-1Gi", "default", "a", "*", "../x", "10%", "[", "\ud800"])
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)
ROOTS = {
    "Pod": "v1.Pod",
    "Job.batch.volcano.sh": "batch.Job",
    "CronJob.batch.volcano.sh": "batch.CronJob",
    "JobFlow.flow.volcano.sh": "flow.JobFlow",
    "Queue.scheduling.volcano.sh": "scheduling.Queue",
    "PodGroup.scheduling.volcano.sh": "scheduling.PodGroup",
    "HyperNode.topology.volcano.sh": "topology.HyperNode",
}


@st.composite
def shaped(draw: Any, notation: Any, depth: Any = 0) -> Any:
    """Draw something that mostly has the shape of a type."""
    expected = go_type(notation)
    if draw(st.integers(0, 14)) == 0:
        return draw(ANYTHING)
    if expected.kind == "struct":
        fields = fields_of(expected.notation)
        few = 3 if depth else 6
        chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=few, unique=True))
        return {name: draw(shaped(fields[name].type.notation, depth + 1)) for name in chosen}
    if expected.kind == "list":
        return draw(st.lists(shaped(expected.element, depth + 1), max_size=2))
    if expected.kind == "map":
        return draw(st.dictionaries(st.text(max_size=5), shaped(expected.element), max_size=2))
    plain = {"bool": st.booleans(), "int32": st.integers(-3, 70000), "int64": st.integers(-3, 9)}
    return draw(plain.get(expected.kind, SCALARS))


@st.composite
def manifests(draw: Any, kind: Any) -> Any:
    made = draw(shaped(ROOTS[kind]))
    if isinstance(made, dict):
        made = {**made, "apiVersion": KINDS[kind].api_version, "kind": KINDS[kind].kind}
        if isinstance(made.get("metadata"), dict):
            made["metadata"].setdefault("name", draw(st.sampled_from(["a", "default", "B", ""])))
    return made


slow = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("path", sorted(SERVICES))
@slow
@given(data=st.data())
def test_a_webhook_answers_any_object(path: Any, data: Any) -> None:
    service = SERVICES[path]
    kind = KINDS[service.kind]
    request = {
        "uid": "u",
        "operation": data.draw(st.sampled_from([*service.operations, "CONNECT"])),
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "object": data.draw(manifests(service.kind)),
        "oldObject": data.draw(manifests(service.kind)),
    }
    body = json.dumps({"request": request}).encode()
    answer = json.loads(answer_review(body, service, WORLD, OPTIONS))["response"]
    assert answer["uid"] == "u"
    assert answer["allowed"] or answer["status"]["message"]
    if "patch" in answer:
        assert json.loads(base64.b64decode(answer["patch"]))


@pytest.mark.parametrize("kind", sorted(ROOTS))
@slow
@given(data=st.data())
def test_the_whole_way_ends_in_a_verdict(kind: Any, data: Any) -> None:
    new, old = data.draw(manifests(kind)), data.draw(manifests(kind))
    for operation in ("CREATE", "UPDATE", "DELETE"):
        before = old if isinstance(old, dict) and isinstance(old.get("metadata"), dict) else None
        verdict = Chain(WORLD, OPTIONS).judge(operation, new, before)
        assert verdict.allowed == (verdict.code == 0)


@slow
@given(data=st.data(), kind=st.sampled_from(sorted(ROOTS)))
def test_lint_tells_something_about_everything_that_is_refused(data: Any, kind: Any) -> None:
    manifest = data.draw(manifests(kind) | ANYTHING)
    if not is_checked(manifest):
        return
    found = lint_object(manifest, Files([manifest]), OPTIONS)
    verdict = Chain(Files([manifest]), OPTIONS).judge("CREATE", manifest)
    assert verdict.allowed or found
    assert all(one.wanted or one.text for one in found)


@slow
@given(st.binary(max_size=60))
def test_any_bytes_are_answered(body: Any) -> None:
    answer = json.loads(answer_review(body, SERVICES["/jobs/validate"], WORLD, OPTIONS))
    assert answer["response"]["allowed"] is False
    assert answer["response"]["status"]["message"]
