"""Mutants: each is one change of one place that still compiles; a seed draws the same again."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.mutant_trials import compiled, replace_code
from tools.mutations import PACKAGE, ROOT, Mutant, mutants_of, sample

CODE = '''\
"""A module."""


def most(numbers: list[int], least: int = 0) -> int:
    """Return the most."""
    best = least
    for number in numbers:
        if number > best and not number == 7:
            best = number
    return best + 1
'''


@pytest.fixture
def made(tmp_path: Path) -> list[Mutant]:
    file = tmp_path / "module.py"
    file.write_text(CODE)
    return mutants_of(file)


def test_every_mutant_compiles_and_differs(made: list[Mutant]) -> None:
    assert len(made) >= 7
    for mutant in made:
        assert ast.dump(ast.parse(mutant.source())) != ast.dump(ast.parse(CODE))


@pytest.mark.parametrize("change", ["number >= best", "if False:", "best - 1", "best + 2", " or "])
def test_the_usual_changes_are_there(made: list[Mutant], change: str) -> None:
    assert any(change in mutant.new for mutant in made)


def test_docstrings_and_imports_stay(made: list[Mutant]) -> None:
    assert all('"""' not in mutant.new and "import" not in mutant.new for mutant in made)


def test_a_seed_draws_the_same_again() -> None:
    files = sorted((PACKAGE / "binder").glob("*.py"))
    assert sample(files, 5, 3) == sample(files, 5, 3)
    assert sample(files, 5, 3) != sample(files, 5, 4)


def test_an_elif_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("if one:\n    pass\nelif two == 2:\n    go()\nelse:\n    stop()\n")
    assert "elif two != 2:\n" in {mutant.new for mutant in mutants_of(file)}
    for mutant in mutants_of(file):
        ast.parse(mutant.source())


def test_lines_after_a_change_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("total = sum(\n    [\n        1,\n    ]\n)\nlast()\n")
    assert {mutant.source().splitlines().index("last()") for mutant in mutants_of(file)[:1]} == {5}


@pytest.mark.parametrize("statement", ["async for row in rows(2):", "match rows(2):"])
def test_only_the_head_of_a_statement_changes_with_it(tmp_path: Path, statement: str) -> None:
    file = tmp_path / "module.py"
    inner = "case 3:\n            use(1)" if "match" in statement else "use(1)"
    text = f"async def run() -> None:\n    {statement}\n        {inner}\n"
    file.write_text(text)
    changed = [ast.unparse(ast.parse(one.source())).split("\n") for one in mutants_of(file)]
    assert len(changed) == 3  # the 2, the call, its 1
    assert all(len(lines) == text.count("\n") for lines in changed)
    assert sum("rows(3):" in lines[1] for lines in changed) == 1


def test_a_guard_of_a_case_changes(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("match one:\n    case 1 if two < 3:\n        pass\n")
    assert any("case 1 if two <= 3:" in mutant.new for mutant in mutants_of(file))


@pytest.mark.parametrize("code", ["both = zip(a, b, strict=True)", "line = log.v(3)"])
def test_what_can_never_matter_stays(tmp_path: Path, code: str) -> None:
    file = tmp_path / "module.py"
    file.write_text(f"{code}\n")
    assert not mutants_of(file)


@pytest.mark.parametrize("code", ["both = zip(a[1:], b)", "ok = check(a, strict=True)"])
def test_what_is_like_it_but_can_matter_changes(tmp_path: Path, code: str) -> None:
    file = tmp_path / "module.py"
    file.write_text(f"{code}\n")
    assert mutants_of(file)


def test_functions_that_others_imported_get_the_code_of_a_change(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(CODE)
    code = compiled(file)
    module: dict[str, Any] = {}
    exec(code, module)  # noqa: S102
    most = module["most"]
    assert replace_code(code, compiled(file, CODE.replace("best + 1", "best + 100")))
    assert most([3]) == 103


def test_a_change_outside_functions_is_not_made_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("LIMIT = 3\n")
    assert not replace_code(compiled(file), compiled(file, "LIMIT = 4\n"))


TESTS = """
from pumice.core.module import most

def test_most():
    assert most([3]) == 4

def test_none():
    assert most([]) == 1

def test_imported_late():
    from pumice.core.late import odd
    assert odd(3) == 1
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project of one module, its tests, and the tool."""
    source = tmp_path / "src" / "pumice" / "core"
    source.mkdir(parents=True)
    for package in (source, source.parent):
        (package / "__init__.py").touch()
    (source / "late.py").write_text("def odd(number: int) -> int:\n    return number % 2\n")
    (source / "module.py").write_text(CODE + "\n\nFIRST = most([1])\nKIND = int | str\n")
    tests = tmp_path / "tests" / "unit" / "core"
    tests.mkdir(parents=True)
    (tests / "test_module.py").write_text(TESTS)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    return tmp_path


def tried(project: Path, count: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.mutants", "--count", str(count), "tests/unit"]
    env = {**os.environ, "PYTHONPATH": str(project / "src")}
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)  # noqa: PLW1510, S603


def test_what_no_test_detects_survives(project: Path) -> None:
    done = tried(project, 1000)
    survivors = {line[1:].strip() for line in done.stdout.splitlines() if line.startswith("+")}
    assert survivors == {
        "if number > best or not number == 7:",
        "if number >= best and (not number == 7):",
        "if number > best and (not number == 8):",
        "FIRST = most([2])",
    }
    assert done.returncode == 1
    (kept,) = (project / "build" / "reach").iterdir()
    assert tried(project, 0).returncode == 0  # from what is kept
    assert list((project / "build" / "reach").iterdir()) == [kept]
    names, tests, sources = json.loads(kept.read_text("utf-8"))
    assert list(sources) == ["src/pumice/core/late.py", "src/pumice/core/module.py"]
    reached = {test.split("::")[1]: {names[i] for i in found} for test, (_, found) in tests.items()}
    assert reached["test_most"] - reached["test_none"] == {
        f"src/pumice/core/module.py:{line}" for line in (8, 9)
    }
