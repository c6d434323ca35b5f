"""Manifest files: YAML and JSON, several documents, lists; faults with file and line."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.api.manifests import load_documents, load_manifests
from pumice.api.objects import Pod
from pumice.errors import ManifestError

NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: n0
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, creationTimestamp: 2026-01-15T10:00:19Z}
spec:
  containers:
  - resources:
      requests:
        cpu: 500m
        memory: 1e3
"""


def names(things: Any) -> Any:
    return [f"{type(thing).__name__} {thing.metadata.name}" for thing in things]


def refusal(given: Any) -> Any:
    with pytest.raises(ManifestError) as caught:
        load_manifests(given)
    return caught.value


def test_documents_are_read_in_order_and_empty_ones_skipped() -> None:
    text = f"---\n# nothing yet\n---\n{NODE}---\n---\n{POD}---\n"
    assert names(load_manifests(text)) == ["Node n0", "Pod p"]


@pytest.mark.parametrize("text", ["", "\n\n", "# only words\n", "---\n---\n"])
def test_a_text_without_documents_has_no_objects(text: str) -> None:
    assert load_manifests(text) == []


def test_a_path_may_be_a_string_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(NODE)
    assert names(load_manifests(path)) == names(load_manifests(str(path))) == ["Node n0"]


def test_one_line_in_flow_style_is_a_text() -> None:
    assert names(load_manifests("{apiVersion: v1, kind: Node, metadata: {name: n0}}")) == [
        "Node n0"
    ]


def test_scalars_are_typed_as_kubernetes_types_them() -> None:
    pod: Any = load_manifests(POD)[0]
    assert pod.metadata.creation_timestamp == "2026-01-15T10:00:19Z"
    assert pod.spec.containers[0].resources.requests == {"cpu": "500m", "memory": 1000.0}


def test_lists_are_unpacked_in_yaml_and_json() -> None:
    items = "".join("- " + part.replace("\n", "\n  ").rstrip() + "\n" for part in (NODE, POD))
    text = f"apiVersion: v1\nkind: List\nitems:\n{items}"
    assert names(load_manifests(text)) == ["Node n0", "Pod p"]
    contents = [document.content for document in load_documents(text)]
    again = json.dumps({"apiVersion": "v1", "kind": "List", "items": contents})
    assert names(load_manifests(again)) == ["Node n0", "Pod p"]


@pytest.mark.parametrize("items", ["", "items: []\n", "items:\n"])
def test_an_empty_list_has_no_objects(items: str) -> None:
    assert load_manifests(f"apiVersion: v1\nkind: List\n{items}") == []


def test_json_values_may_follow_each_other() -> None:
    one = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%s"}}'
    assert names(load_manifests(f"{one % 'a'}\n\n{one % 'b'}")) == ["Namespace a", "Namespace b"]


def test_anchors_and_merges_are_followed() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: &base {disk: ssd, zone: a}
  overhead: {}
  containers:
  - &first {name: one, image: i}
  - {<<: *first, name: two}
"""
    (pod,) = load_manifests(text)
    assert isinstance(pod, Pod)
    assert [(c.name, c.image) for c in pod.spec.containers] == [("one", "i"), ("two", "i")]


def test_the_first_of_several_merged_mappings_wins() -> None:
    text = "a: &a {t: 1}\nb: &b {t: 2, u: 2}\nc: {<<: [*a, *b], v: 3}\n"
    (document,) = load_documents(text)
    assert document.content["c"] == {"t": 1, "u": 2, "v": 3}


def test_documents_know_where_they_start() -> None:
    assert [d.source for d in load_documents(f"{NODE}---\n{NODE}")] == ["<text>:1", "<text>:6"]


def test_a_fault_is_reported_with_the_line_of_the_field() -> None:
    error = refusal(f"{NODE}---\n{POD.replace('500m', 'half')}")
    assert error.file == "<text>:13"
    assert error.field == "spec.containers[0].resources.requests.cpu"


def test_a_missing_field_is_reported_with_the_line_of_what_lacks_it() -> None:
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec:\n  taints:\n  - key: a\n"
    assert refusal(text).file == "<text>:6"


def test_a_fault_in_an_item_of_a_list_has_its_own_line() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- {kind: Node}\n- {kind: Pod}\n"
    assert str(refusal(text)).startswith("<text>:4: Node: apiVersion: ")


def test_a_fault_in_json_has_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(
        '{"apiVersion": "v1", "kind": "List", "items": [\n'
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},\n'
        '{"apiVersion": "v1", "kind": "Node", "metadata":\n{"name": 5}}]}\n'
    )
    assert refusal(path).file == f"{path}:4"


def test_a_fault_in_json_that_is_no_yaml_has_the_line_of_its_document() -> None:
    one = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %s}}\n'
    assert refusal(one % '"a"' + one % 5).file == "<text>:2"


def test_broken_json_in_a_json_file_is_reported_as_json(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"apiVersion": "v1",\n "kind" "Pod"}')
    error = refusal(path)
    assert (error.wanted, error.file) == ("readable JSON", f"{path}:2")


FAULTS = {
    "broken YAML": ("a: 1\nb: [\n", ":3", "readable YAML"),
    "a value beside a value": ("a: b: c\n", ":1", "readable YAML"),
    "a control character": ("a: 1\nb: \x00\n", ":2", "printable characters"),
    "a key given twice": ("a: 1\nb: 2\na: 3\n", ":3", "each key once"),
    "a key given twice in JSON": ('{"a": 1, "a": 2}', ":1", "each key once"),
    "a number that is none in JSON": ('{"a": NaN}', ":1", "a finite number"),
    "a mapping as key": ("{a: 1}: 2\nb: 3\n", ":1", "a string as key"),
    "a tag": ("a: 1\nb: !!binary aGk=\n", ":2", "a value without a tag"),
    "a merge with no mapping": ("a:\n  <<: 5\n", ":2", "a mapping to merge"),
    "a list with no items": ("kind: List\nitems: 5\n", ":1", "a list"),
    "words": ("just some\nwords\n", ":1", "an object with apiVersion and kind"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_text_that_cannot_be_read_is_reported_with_its_line(what: Any) -> None:
    text, line, wanted = FAULTS[what]
    error = refusal(text)
    assert (f"<text>{line}", wanted) == (error.file, error.wanted)


HOSTILE = {
    "an anchor inside itself": "a: &a [*a]\n",
    "anchors that multiply": "a0: &a0 [x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)),
    "deep flow nesting": "a: " + "[" * 100_000 + "]" * 100_000 + "\n",
    "deep block nesting": "- " * 100_000 + "x\n",
    "deep JSON": '{"a":' * 100_000 + "1" + "}" * 100_000,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_is_refused(what: Any) -> None:
    assert refusal(HOSTILE[what]).file.startswith("<text>")


def test_many_flow_mappings_are_not_deep() -> None:
    items = "".join(
        f"- {{apiVersion: v1, kind: Node, metadata: {{name: n{i}}}}}\n" for i in range(300)
    )
    assert len(load_manifests(f"kind: List\nitems:\n{items}")) == 300


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    absent = tmp_path / "absent.yaml"
    assert refusal(absent).file == str(absent)
    assert refusal(tmp_path).wanted == "a readable file"
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: \xe9\n")
    assert refusal(latin).wanted == "UTF-8 text"


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + NODE.encode())
    assert names(load_manifests(path)) == ["Node n0"]
