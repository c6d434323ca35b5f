"""What is wrong with a text that is not YAML, in plain words."""

import pytest
import yaml

from pumice.api.yaml_text import fault_words, parse_yaml
from pumice.errors import ManifestError


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
    assert sentence.startswith(f"f.yaml:{line}: wanted ")
    assert sentence.endswith(f", found {found}")


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
