"""YAML in plain block style: which texts are read line by line, and the lines of errors."""

import pytest
import yaml

from pumice.api.manifests import load_documents, load_manifests, load_packs
from pumice.api.yaml_text import fault_words, parse_yaml, plain_blocks
from pumice.errors import ManifestError

LIST = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    annotations:
      note: |
        two
        lines
      long: 'begins here
        and ends here'
    name: n1
  status:
    allocatable: {"cpu": "4"}
# between
- apiVersion: v1
  kind: Pod
  metadata:
    name: p1
    namespace: default
  spec:
    containers:
    - name: c
      resources:
        requests:
          cpu: 2
kind: List
"""


def test_a_list_is_read_with_the_lines_of_its_items() -> None:
    (block,) = plain_blocks(LIST) or []
    assert block.content["items"][0]["metadata"]["annotations"] == {
        "note": "two\nlines\n",
        "long": "begins here and ends here",
    }
    documents = load_documents(LIST)
    assert [document.line for document in documents] == [3, 16]
    assert documents[0].place_of(("status", "allocatable", "cpu")) == "<text>:14"
    assert documents[1].place_of(("spec", "containers", 0, "resources", "requests")) == "<text>:26"
    (pack,) = load_packs(LIST)
    assert [document.line for document in pack.documents()] == [3, 16]


def test_an_object_that_cannot_be_used_names_its_line() -> None:
    with pytest.raises(ManifestError) as caught:
        load_manifests(LIST.replace("cpu: 2", "cpu: [2]"))
    assert str(caught.value).startswith("<text>:26: ")


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",  # no end of the line
        "a: 1\r\n",
        "a\n",
        "a: &x 1\nb: *x\n",
        "a: 1\na: 2\n",
        "a: 1\n  b: 2\n",
        "a:\n  b: 1\n c: 2\n",
        "- a\nb: 1\n",
        "1: a\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: 1\n...\n",
        "kind: List\nitems: [{a: 1}]\n",
        "\ta: 1\n",
        "a: |\n  \tb\n",  # a tab where the parser still looks for the indentation
        "a: @b\n",
    ],
)
def test_other_texts_are_left_to_the_parser(text: str) -> None:
    assert plain_blocks(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: [1,\n  2]\nb: 0.5 # half\n", {"a": [1, 2], "b": 0.5}),
        ("a:\n  two\n  words\n", {"a": "two words"}),
        ("a: >-\n  two\n  words\n\n- b\n", None),
        ("- |+\n  x\n\n- |-\n  y\n\n", ["x\n\n", "y"]),
        ("a:\n- b:\n  - c\n  d:\n", {"a": [{"b": ["c"], "d": None}]}),
        ("- - a\n  - b: 1\n    c: 2\n-\n", [["a", {"b": 1, "c": 2}], None]),
        ("'y': \"n\"\nf:x: y\n", {"y": "n", "f:x": True}),
    ],
)
def test_values_in_other_styles_are_read_one_by_one(text: str, value: object) -> None:
    blocks = plain_blocks(text)
    if value is None:
        assert blocks is None
        return
    assert blocks is not None
    assert [block.content for block in blocks] == [value]


def test_documents_follow_each_other() -> None:
    text = "---\n# none\n---\na: 1\n---\n\n- b\n"
    blocks = plain_blocks(text) or []
    assert [(block.content, block.first) for block in blocks] == [({"a": 1}, 3), (["b"], 6)]


def test_nesting_is_bounded() -> None:
    deep = "".join(f"{'  ' * level}a:\n" for level in range(120))
    assert plain_blocks(deep) is None
    with pytest.raises(ManifestError, match="nested levels"):
        parse_yaml(deep, "f.yaml")


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("a:\n\tb: 1\n", 2, "a tab, where YAML wants spaces"),
        ("a:\n  b: 1\n\tc: 2\n", 3, "a tab, where YAML wants spaces"),
        ("a: @b\n", 1, "'@', with which no text can begin unless it is in quotes"),
        ("a: [b\n", 2, "no ',' or ']' in a list in brackets"),
        ('a: "x\n', 2, "a quote that is not closed"),
        ("a: *x\n", 1, "an undefined alias"),
        ("a: b: c\n", 1, "a ':' where no key can be: look at the indentation and the quotes"),
        ("{a: 1}}\n", 1, "more after the end of the value"),
        ("a: 1\na: 2\n", 2, "'a' twice"),
        ("a: \x07\n", 1, "'\\x07'"),
    ],
)
def test_a_fault_is_named_with_its_line(text: str, line: int, found: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_yaml(text, "f.yaml")
    sentence = str(caught.value)
    assert sentence.startswith(f"f.yaml:{line}: expected ")
    assert sentence.endswith(f", got {found}")


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        ("expected ',' or ']', but got '<stream end>'", "'<stream end>' in place of ',' or ']'"),
        ("found character '\\t' that cannot start any token", "a character, with which no text"),
        ("", "something else"),
    ],
)
def test_the_reader_without_c_has_words_too(problem: str, found: str) -> None:
    assert fault_words(yaml.MarkedYAMLError(problem=problem), "").startswith(found)
