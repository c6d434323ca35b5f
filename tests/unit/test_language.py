"""The rules of docs/style.md that a program can check: docstrings, pages and messages."""

import ast
import re
from collections.abc import Iterator
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
    ROOT / "src" / "pumice" / "cli" / "demo" / "story.yaml",
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
TERMS = re.compile(
    r"\bauthorit(?:y|ies)\b|\b(?:is|are) there\b|\btakes? (?:no )?pods\b(?! of)|\bon its way out\b"
    r"|\bwanted .*, found\b|\bgo(?:es)? on\b|\bprocessor time\b|\bas ever\b"
    r"|\bthe one (?:that|of|which|who)\b|\bcustom resource definitions?\b|\brights\b"
    r"|\b(?:somebody|whomever|nobody)\b(?![ -]was[ -]evicted)",
    re.IGNORECASE,
)
"""What readers of Kubernetes' pages call otherwise: CA, permissions, CRD, CPU, schedulable."""
LOWER_CPU = re.compile(r"(?<![\w./-])cpus?\b(?![\w/=:])")
PLURAL_CPU = re.compile(r"(?<![\w./-])cpus\b|\bnot made yet\b")
"""Words of messages; a single `cpu` is the name of the resource there."""
HISTORY = ("decisions", "changelog.d")
"""Folders of notes that are not rewritten."""
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def docstrings(path: Path) -> list[tuple[int, str]]:
    return [
        (getattr(node, "lineno", 1), text)
        for node in nodes_of(path)
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


def test_pages_of_users_use_the_terms_of_kubernetes() -> None:
    assert [
        f"{page.relative_to(ROOT)}:{found}"
        for page in PAGES
        if page.name != "style.md" and page.parent.name not in HISTORY
        for pattern in (TERMS, LOWER_CPU)
        for found in lines_with(pattern, page.read_text(encoding="utf-8"))
    ] == []


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Return the texts of a module that are not docstrings, each with its line."""
    told = {id(each.value) for each in nodes_of(path) if isinstance(each, ast.Expr)}
    for each in nodes_of(path):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in told:
            yield each.lineno, each.value


def test_messages_use_the_terms_of_kubernetes() -> None:
    """Fields of Kubernetes' own, such as certificate-authority, have no spaces."""
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in SOURCES
        if path.is_relative_to(ROOT / "src") and path.parent.name != "schema"
        for line, text in messages(path)
        for pattern in (TERMS, PLURAL_CPU)
        if " " in text.strip() and pattern.search(text.replace("certificate-authority", ""))
    ] == []


def test_forbidden_words_are_found() -> None:
    assert lines_with(WORDS, "the plugin is told\nfine\n`is told`\n") == ["1: the plugin is told"]
    assert lines_with(TERMS, "it may, if nobody asks\nwhy nobody was evicted") == [
        "1: it may, if nobody asks"
    ]
    assert lines_with(LOWER_CPU, "2 cpus\n`cpu`, CPU\nrequests.cpu=2") == ["1: 2 cpus"]
    assert OPENINGS.match("Tell whether") is not None
    assert OPENINGS.match("Letters are") is None
