"""The rules of docs/style.md that a program can check: docstrings, pages and messages."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "bench", "deploy", "tools", "examples")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if not {"node_modules", "vendor", ".venv"} & set(path.parts)
)
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "changelog.d").glob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
]

OPENINGS = re.compile(r"(Give|Tell|Say|Let|Gives|Tells|Says|Lets)\b")
"""Words that no docstring begins with: it returns, reports or allows instead."""
WORDS = re.compile(
    r"\b(let in|lets? (?:\w+ ){1,2}in\b|is told|are told|was told|tells of|told by|whoever"
    r"|nobody's|as far as it is known|passes over|passed over|taken up again|anew|afresh"
    r"|worked out|works out|mended|keep in mind|gives? back|given back|unless told)\b",
    re.IGNORECASE,
)
"""Words that the style page replaces."""
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


@cache
def docstrings(path: Path) -> list[tuple[int, str]]:
    return [
        (getattr(node, "lineno", 1), text)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and (text := ast.get_docstring(node)) is not None
    ]


def lines_with(pattern: re.Pattern[str], text: str) -> list[str]:
    plain = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(plain.splitlines(), 1)
        if pattern.search(line)
    ]


def test_docstrings_begin_with_what_a_function_returns_or_does() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in SOURCES
        for line, text in docstrings(path)
        if OPENINGS.match(text)
    ] == []


def test_docstrings_use_the_words_of_the_style_page() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {found}"
        for path in SOURCES
        if path.is_relative_to(ROOT / "src")
        for line, text in docstrings(path)
        for found in lines_with(WORDS, text)
    ] == []


def test_pages_use_the_words_of_the_style_page() -> None:
    assert [
        f"{page.relative_to(ROOT)}:{found}"
        for page in PAGES
        if page.name != "style.md"
        for found in lines_with(WORDS, page.read_text(encoding="utf-8"))
    ] == []


def test_forbidden_words_are_found() -> None:
    assert lines_with(WORDS, "the plugin is told\nfine\n`is told`\n") == ["1: the plugin is told"]
    assert OPENINGS.match("Tell whether") is not None
    assert OPENINGS.match("Letters are") is None
