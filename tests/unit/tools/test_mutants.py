"""Mutants: each is one change of one place that still compiles; a seed draws the same again."""

import ast
from pathlib import Path

import pytest

from tools import mutants
from tools.mutants import PACKAGE, Mutant, Trial, mutants_of, sample, steps_for

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


def test_the_nearest_tests_come_first() -> None:
    first, second = steps_for(PACKAGE / "plugins" / "tdm.py")
    assert first == ["tests/unit/plugins/test_tdm.py"]
    assert "tests/unit/plugins" in second


def test_a_noticed_change_is_killed_and_the_copy_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "src" / "pumice" / "core"
    source.mkdir(parents=True)
    for package in (source, source.parent):
        (package / "__init__.py").touch()
    file = source / "module.py"
    file.write_text(CODE)
    test = tmp_path / "test_module.py"
    test.write_text(
        "from pumice.core.module import most\n\ndef test():\n    assert most([3]) == 4\n"
    )
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "steps_for", lambda _: [["-c", "/dev/null", str(test)]])
    (tmp_path / "copy").mkdir()
    trial = Trial(tmp_path / "copy", 60.0)
    by_text = {mutant.new.strip(): mutant for mutant in mutants_of(file)}
    assert trial.kills(by_text["return best - 1"])
    assert not trial.kills(by_text["if number >= best and (not number == 7):"])
    assert (tmp_path / "copy/src/pumice/core/module.py").read_text() == CODE
