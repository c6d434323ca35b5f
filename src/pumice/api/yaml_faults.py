"""What is wrong with a text that is not YAML, in plain words; used by all readers of YAML here."""

import re
from typing import Final

import yaml

from pumice.errors import Words

_TAB: Final = "a tab, where YAML wants spaces"
_LOOSE_COLON: Final = "a ':' where no key can be: look at the indentation and the quotes"
_NOTHING: Final = re.compile(r"(?:did|could) not find (?:the )?expected (?P<what>.+)")
_PLACES: Final = {
    "block collection": " in a list",
    "flow sequence": " in a list in brackets",
    "flow mapping": " in a mapping in braces",
    "block mapping": " in a mapping",
}
"""How the parser names a place, and how an author does."""
_INSTEAD: Final = re.compile(r"expected (?P<wanted>.+), but (?:found|got) (?P<found>.+)")


def fault_words(fault: yaml.MarkedYAMLError, text: str) -> Words:
    """Describe what a reader of YAML found in place of what it could read."""
    problem = str(fault.problem or "").removeprefix("but ").removeprefix("found ")
    if "tab character" in problem:
        return Words(_TAB)
    if "cannot start any token" in problem:
        return _unusable_character(fault, text)
    if problem.startswith("mapping values are not allowed"):
        return Words(_LOOSE_COLON)
    if "<document start>" in problem:
        return Words("more after the end of the value")
    if problem == "unexpected end of stream" and "quoted" in str(fault.context):
        return Words("a quote that is not closed")
    context = str(fault.context or "")
    where = next((words for part, words in _PLACES.items() if part in context), "")
    return Words(f"{_thing(problem)}{where or (context and f' {context}')}")


def _unusable_character(fault: yaml.MarkedYAMLError, text: str) -> Words:
    """Name the character: a tab, or one that has a meaning of its own in YAML."""
    lines = text.split("\n")
    mark = fault.problem_mark
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    character = line[mark.column : mark.column + 1] if mark else ""
    if character == "\t":
        return Words(_TAB)
    shown = repr(character) if character else "a character"
    return Words(f"{shown}, with which no text can begin unless it is in quotes")


def _thing(problem: str) -> str:
    """Write a problem as what is there, for a sentence that goes on after "found"."""
    if found := _NOTHING.fullmatch(problem):
        return f"no {found['what'].removesuffix(' indicator')}"
    if found := _INSTEAD.fullmatch(problem):
        return f"{found['found']} in place of {found['wanted']}"
    if not problem or problem.startswith(("a ", "an ", "no ", "the ")):
        return problem or "something else"
    return f"{'an' if problem[0] in 'aeiou' else 'a'} {problem}"
