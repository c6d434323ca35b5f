"""What reads the plain block style of YAML agrees with the parser of all YAML, on any text."""

from collections.abc import Sequence
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.manifests import yaml_documents
from pumice.api.yaml_text import Builder, child, compose_all, line_at, line_of, plain_blocks

_BODIES = (
    *("a: 1", "b: x y", "b:", "c: 'q''r'", 'c: "s"', "d: {}", "d: []", "e: ~", "f: 010", "g: 1e3"),
    *("items:", "kind: List", "items: []", "items: [{a: 1}]", "metadata:", "h: a:b", "h: a: b"),
    *("- a: 2", "- b:", "- b", "-", "- ", "- - c", "- - d: 3", "- {e: 1}", "- 'f'", "- |", "-x"),
    *("t: |", "t: |-", "t: |+", "t: |2", "t: >", "t: >-", "- t: |", "text", "more: text", "'"),
    *('u: "v', 'w"', "u: 'v", "w'", "u: [1,", "2]", "u: {a: 1,", "b: 2}", "v: x # y", "v: x#y"),
    *("# c", "", "   ", "---", "...", "--- a", "%YAML 1.1", "? k", ": v", "y: 1", "1: a", "<<: x"),
    *("p: &a 1", "p: *a", "- &a b", "- *a", "p: !!str 1", "p: !x 1", "p: @q", "p: \t", "p:\tq"),
    *('"q": 1', "'q': 1", '"r":1', "'s' : 1", "k y: 1", "z/y.x: -1", "z: -", "z: - 1", "z: --x"),
    *("f:spec:", 'k:{"a":"b"}:', "n: é", "n: \x85", "n: \u2028", "n: \ufeff", "m: -:", "m: x:"),
    *("o: .inf", "o: 99999999999999999999", "l: #", "l: # c", "- # c", "x: ?a", "x: a?", "x: a,b"),
    *("\tr",),
)
_LINES = st.builds(
    lambda indent, body, end: " " * indent + body + end,
    st.sampled_from((0, 0, 0, 1, 2, 2, 2, 4, 4, 6)),
    st.sampled_from(_BODIES),
    st.sampled_from(("\n",) * 12 + (" \n", "\r\n", "")),
)
_WORDS = st.one_of(
    st.text(st.sampled_from("ab1 :#-'\"\n\t\\{}[],&*!|>%@`?~.é\x85\u2028"), max_size=12),
    st.text("abcdefg ", min_size=60, max_size=200),
    st.sampled_from(("true", "no", "y", "null", "~", "0x1f", "1e3", "-", "---", "=", "<<", "{}")),
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), _WORDS)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(_WORDS, inner, max_size=4),
        st.dictionaries(st.sampled_from(("items", "kind", "a", "b/c")), inner, max_size=4),
    ),
    max_leaves=12,
)


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, and text of several lines as the literal that kubectl writes."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _literal(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _literal)


def _places(items: Sequence[tuple[Any, int]]) -> list[tuple[str, int]]:
    return [(repr(content), line) for content, line in items]


def _check(text: str) -> bool:
    """Compare both readers; return whether the one for blocks knows the text."""
    blocks = plain_blocks(text)
    if blocks is None:
        return False
    roots = list(compose_all(text, "f"))
    contents = [Builder("f").build(root) for root in roots]
    found = [(block.content, block.first + 1) for block in blocks]
    wanted = [(each, line_of(root)) for each, root in zip(contents, roots, strict=True)]
    assert _places(found) == _places(wanted)
    for block, root in zip(blocks, roots, strict=True):
        for i, line in enumerate(block.item_lines):
            node = child(child(root, "items") or root, i)
            assert node is not None
            assert line + 1 == line_of(node)
    return True


@given(st.lists(_LINES, max_size=9).map("".join))
def test_any_lines(text: str) -> None:
    _check(text)


@given(_VALUES, st.sampled_from((40, 80, 10_000)), st.sampled_from((None, 4)))
def test_dumped_values(value: Any, width: int, indent: int | None) -> None:
    _check(yaml.dump(value, Dumper=_Dumper, width=width, indent=indent, allow_unicode=True))


@given(st.lists(_VALUES, min_size=1, max_size=3), st.integers(0, 10_000), _WORDS)
def test_texts_with_something_put_in(values: list[Any], place: int, word: str) -> None:
    text = yaml.dump_all(values, Dumper=_Dumper, allow_unicode=True)
    at = place % (len(text) + 1)
    _check(text[:at] + word + text[at:])


_NAMES = st.sampled_from(("name", "spec", "a/b.c", "labels", "f:x"))
_PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text("ab: 1-\n", max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner)),
    max_leaves=9,
)


@given(st.lists(st.dictionaries(_NAMES, _PLAIN, min_size=1), min_size=1, max_size=3))
def test_lists_of_objects_are_known_with_the_lines_of_their_fields(items: list[Any]) -> None:
    text = yaml.dump({"items": items, "kind": "List", "metadata": {}}, Dumper=_Dumper)
    assert _check(text)
    (root,) = compose_all(text, "f")
    for i, document in enumerate(yaml_documents(text, "f")):
        for name, value in items[i].items():
            paths = [(name,), *([(name, 0)] if isinstance(value, list) else [])]
            for path in paths:
                assert document.line_of_field(path) == line_at(root, ("items", i, *path))
