"""The shape of the source itself: line budgets, docstrings, layers that exist."""

import ast
import itertools
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pumice
from tests.present import present

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "pumice"
MODULE_LINES = 800  # files are cut by idea; one this long probably holds two
TEST_LINES = 800
PAGE_COLUMNS = 100  # of JavaScript, style sheets and templates, as ruff asks of Python
FUNCTION_LINES = 55  # most have fewer than 40; long ones list parameters
FRAMEWORK_FILES, FRAMEWORK_ROWS = 45, 12

MODULES = sorted(SOURCE.rglob("*.py"))
FILES = [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]


ANNOTATION = re.compile(r"[a-z0-9.-]+\.(sh|io|dev)/(?!v\d)[\w.-]+")


@dataclass(frozen=True)
class Shape:
    """What these tests ask of a module; its syntax tree would take much more room."""

    has_docstring: bool
    long_functions: list[str]
    badly_exported: list[str]
    annotations: frozenset[str]


def relative(path: Any) -> Any:
    return str(path.relative_to(ROOT))


@cache
def shape(path: Path) -> Shape:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return Shape(
        has_docstring=bool(ast.get_docstring(tree)),
        long_functions=[
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and present(node.end_lineno) - node.lineno >= FUNCTION_LINES
        ],
        badly_exported=badly_exported(tree),
        annotations=frozenset(
            node.value
            for node in nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and ANNOTATION.fullmatch(node.value)
        ),
    )


def badly_exported(tree: ast.Module) -> list[str]:
    """List the names in __all__ that are not bound at the top of the module, or said twice."""
    bound, exported = set(), []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            bound |= names
            if "__all__" in names:
                exported = ast.literal_eval(present(node.value))
    return [name for name in exported if name not in bound or exported.count(name) > 1]


def test_a_file_keeps_to_its_line_budget() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert [
        (relative(path), n)
        for path, n in lines.items()
        if n > (MODULE_LINES if SOURCE in path.parents else TEST_LINES)
    ] == []


def test_pages_keep_to_the_width_of_the_code() -> None:
    """Lines of hundreds of characters hide how much code there is; vendored files stay as made."""
    pages = (path for end in ("js", "css", "html") for path in SOURCE.rglob(f"*.{end}"))
    assert [
        f"{relative(path)}:{number}"
        for path in sorted(pages)
        if "vendor" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > PAGE_COLUMNS
    ] == []


def test_a_function_keeps_to_its_line_budget() -> None:
    assert {
        relative(path): shape(path).long_functions for path in MODULES if shape(path).long_functions
    } == {}


def test_a_module_opens_with_a_docstring() -> None:
    assert [relative(path) for path in MODULES if not shape(path).has_docstring] == []


def test_what_a_module_exports_exists_and_is_said_once() -> None:
    """Every name in __all__ is bound at the top of the module."""
    assert {
        relative(path): shape(path).badly_exported for path in MODULES if shape(path).badly_exported
    } == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a = 1\n__all__ = ['a']", []),
        ("from x import y as a\n__all__ = ['a', 'y']", ["y"]),
        ("def a(): ...\n__all__ = ['a', 'a']", ["a", "a"]),
    ],
)
def test_a_name_that_is_badly_exported_is_found(source: str, found: list[str]) -> None:
    assert badly_exported(ast.parse(source)) == found


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert [relative(path) for path in MODULES if path.stem in empty] == []


def test_deciding_is_kept_from_every_module_that_touches_the_world() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    forbidden = next(c for c in contracts["contracts"] if c["type"] == "forbidden")
    world = [
        f"pumice.{name}"
        for name in ("cluster", "cache", "binder")
        if (SOURCE / name / "__init__.py").exists() or (SOURCE / f"{name}.py").exists()
    ]
    assert [name for name in world if name not in forbidden["forbidden_modules"]] == []


def test_the_version_is_the_one_that_is_packaged() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == pumice.__version__


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("CITATION.cff", "version: {}"),
        ("deploy/helm/pumice/Chart.yaml", "version: {}"),
        ("deploy/helm/pumice/Chart.yaml", "appVersion: {}"),
        ("deploy/pumice.yaml", "          image: pumice:{}"),
        ("README.md", "docker build --tag registry.example/pumice:{0} . && docker push"),
        ("docs/install.md", "docker build --tag registry.example/pumice:{} ."),
        ("docs/migrating.md", "docker build --tag registry.example/pumice:{} ."),
    ],
)
def test_every_file_that_names_the_version_names_this_one(file: str, line: str) -> None:
    assert line.format(pumice.__version__) in (ROOT / file).read_text(encoding="utf-8")


def test_every_dependency_is_locked_with_its_hash() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = pyproject["dependency-groups"]
    runtime = pyproject["project"]["dependencies"]
    wanted = {
        "runtime.txt": runtime,
        "dev.txt": [*runtime, *groups["test"], *groups["lint"], *groups["build"]],
    }
    for name, dependencies in wanted.items():
        text = (ROOT / "requirements" / name).read_text()
        locked = re.findall(r"^([a-z0-9-]+)==\S+ \\\n    --hash=sha256:", text, re.MULTILINE)
        asked = [re.split(r"[\[<>=! ]", dependency)[0] for dependency in dependencies]
        assert [each for each in asked if each not in locked] == [], name


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt"])
def test_the_lock_names_no_address(name: str) -> None:
    """What is installed is fixed by version and hash; the source is up to the machine."""
    text = (ROOT / "requirements" / name).read_text()
    assert re.findall(r"https?://|--(?:extra-)?index-url|--find-links|^/", text, re.MULTILINE) == []


def test_the_architecture_page_lists_the_layers_in_their_order() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"
    )
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Layers")[2].partition("## Vocabulary")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    places = {
        name.removesuffix("/").removesuffix(".py"): number
        for number, row in enumerate(rows)
        for name in re.findall(r"`([a-z_./]+)`", row)
    }
    layers = [re.findall(r"[a-z_]+", layer) for layer in contract["layers"]]
    assert sorted(places) == sorted(name for layer in layers for name in layer)
    order = [[places[name] for name in layer] for layer in layers]
    assert all(max(upper) <= min(lower) for upper, lower in itertools.pairwise(order)), (
        "a lower layer is listed above a higher one"
    )


def test_the_framework_has_few_files_and_few_rows() -> None:
    """A row holds the files that import only rows below; lower the bounds, never raise them."""
    folder = SOURCE / "framework"
    used = {
        ".".join(path.relative_to(folder).with_suffix("").parts): re.findall(
            r"from pumice\.framework\.([a-z_.]+) import", path.read_text("utf-8")
        )
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    }

    @cache
    def row(name: str) -> int:
        return 1 + max((row(each) for each in used.get(name, ())), default=0)

    assert len(used) <= FRAMEWORK_FILES
    assert max(map(row, used)) <= FRAMEWORK_ROWS


def test_names_of_annotations_and_labels_are_written_once() -> None:
    """One that several modules know is a constant of ``pumice.api.annotations``."""
    written: dict[str, set[str]] = {}
    for path in MODULES:
        for text in shape(path).annotations:
            written.setdefault(text, set()).add(relative(path))
    assert {name: paths for name, paths in written.items() if len(paths) > 1} == {}
