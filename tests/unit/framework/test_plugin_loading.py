"""Plugins by a text: a file or a module, all of its classes or one; errors are reported."""

import sys
from textwrap import dedent
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.framework.arguments import bind_arguments
from pumice.framework.plugin import Plugin
from pumice.framework.registry import load_plugins, whole_source

TWO = """
    from __future__ import annotations

    from dataclasses import dataclass

    from pumice.plugin import Plugin, arg
    from pumice.plugins.gang import Gang


    class Base(Plugin):
        '''Has no name, so it is no plugin yet.'''


    @dataclass(kw_only=True)
    class First(Base, name="first"):
        '''The first.'''

        weight: float = arg("first.weight", default=1.0, doc="a factor")


    class Second(Plugin, name="second"):
        '''The second.'''
"""


MISSPELT = """from pumice.plugin import Plugin

class Odd(Plugin, name='odd'):
    def score_node(self, task, nodes):
        return None
"""


@pytest.fixture
def save(tmp_path: Any) -> Any:
    def write(text: Any, name: Any = "policy.py") -> Any:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return str(path)

    return write


def problem(*sources: Any) -> Any:
    with pytest.raises(InputError) as caught:
        load_plugins(sources)
    return caught.value


def test_a_file_gives_every_plugin_that_it_defines(save: Any) -> None:
    found = load_plugins([save(TWO)])
    assert sorted(found) == ["first", "second"]
    assert all(issubclass(cls, Plugin) for cls in found.values())


def test_annotations_that_are_texts_are_looked_up_in_the_file(save: Any) -> None:
    cls = load_plugins([save(TWO)])["first"]
    assert bind_arguments(cls, {"first.weight": 3.0}) == ({"weight": 3.0}, [])


def test_one_class_of_a_file_can_be_named(save: Any) -> None:
    assert list(load_plugins([f"{save(TWO)}:Second"])) == ["second"]


def test_a_file_is_loaded_once_so_that_its_classes_are_the_same(save: Any) -> None:
    path = save(TWO)
    assert load_plugins([path])["second"] is load_plugins([f"{path}", path])["second"]


def test_files_of_one_name_in_two_folders_do_not_meet(save: Any) -> None:
    one = save('from pumice.plugin import Plugin\nclass A(Plugin, name="a"): pass', "x/policy.py")
    two = save('from pumice.plugin import Plugin\nclass A(Plugin, name="b"): pass', "y/policy.py")
    assert sorted(load_plugins([one, two])) == ["a", "b"]


def test_a_module_that_can_be_imported(save: Any, tmp_path: Any, monkeypatch: Any) -> None:
    save("from policies.night import Night", "policies/__init__.py")
    save(
        'from pumice.plugin import Plugin\nclass Night(Plugin, name="night"): pass',
        "policies/night.py",
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        for source in ("policies.night:Night", "policies.night", "policies"):
            assert list(load_plugins([source])) == ["night"]
    finally:
        for name in ("policies", "policies.night"):
            sys.modules.pop(name, None)


def test_the_whole_path_of_a_file_serves_processes_in_other_folders(
    tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert whole_source("policy.py") == str(tmp_path / "policy.py")
    assert whole_source("policy.py:Night") == f"{tmp_path / 'policy.py'}:Night"
    assert whole_source("policies.night:Night") == "policies.night:Night"


def test_a_file_that_is_not_there(tmp_path: Any) -> None:
    path = str(tmp_path / "no.py")
    assert str(problem(path)).startswith(f"{path}: expected a file that exists, got")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = 1", "'no class at all'"),
        ("class A: pass\nclass B: pass", "'A, B'"),
        ("from pumice.plugins.gang import Gang", "'no class at all'"),
    ],
)
def test_a_file_without_a_plugin(save: Any, text: Any, found: Any) -> None:
    path = save(text)
    wanted = "a class that inherits from pumice.plugin.Plugin"
    assert str(problem(path)) == f"{path}: expected {wanted}, got {found}"


def test_a_class_that_the_file_does_not_have(save: Any) -> None:
    source = f"{save(TWO)}:Third"
    assert str(problem(source)).endswith("got 'Third' (its classes are Base, First, Second)")
    bare = f"{save('x = 1', 'bare.py')}:Third"
    assert str(problem(bare)).endswith("got 'Third' (it has no class at all)")


@pytest.mark.parametrize("text", ["class Odd: pass", "Odd = 3"])
def test_a_class_that_is_no_plugin(save: Any, text: Any) -> None:
    source = f"{save(text)}:Odd"
    wanted = "a class that inherits from pumice.plugin.Plugin"
    assert str(problem(source)) == f"{source}: expected {wanted}, got 'Odd'"


def test_a_plugin_without_a_name(save: Any) -> None:
    path = save("from pumice.plugin import Plugin\nclass Shy(Plugin): pass")
    for source in (path, f"{path}:Shy"):
        assert str(problem(source)).endswith(
            "expected a plugin with a name, got 'Shy' (write class Shy(Plugin, name=\"…\"))"
        )


def test_two_plugins_of_one_name(save: Any) -> None:
    one, two = (
        save('from pumice.plugin import Plugin\nclass Mine(Plugin, name="mine"): pass', name)
        for name in ("one.py", "two.py")
    )
    assert str(problem(one, two)) == (
        f"{two}: expected a name of its own, got 'mine' (Mine of {one} has it too)"
    )
    assert list(load_plugins([one, f"{one}:Mine"])) == ["mine"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = 1\nx / 0\n", "line 2: expected Python that can be imported, got 'ZeroDivisionError'"),
        ("def f():\n    return 1 / 0\n\nf()\n", "line 2: expected Python that can be imported"),
        ("x = 1\ndef (:\n", "line 2: expected Python that can be imported, got 'SyntaxError'"),
        ("import no_such_thing\n", "line 1: expected Python that can be imported, got 'ModuleNot"),
        ("import sys\nsys.exit(3)\n", "line 2: expected Python that can be imported, got 'System"),
        (
            MISSPELT,
            "line 3: expected Python that can be imported, got 'UnknownHookError' (plugin 'odd'",
        ),
    ],
)
def test_a_file_that_cannot_be_imported_is_reported_with_the_line(
    save: Any, text: Any, wanted: Any
) -> None:
    path = save(text)
    error = problem(path)
    assert str(error).startswith(f"{path}: {wanted}")
    assert error.__cause__ is not None
    assert "suffix" not in error.hint
    assert not [name for name in sys.modules if path in name]


def test_what_the_error_of_a_file_says_is_kept_whole(save: Any) -> None:
    text = "there is no such hook; did you mean 'score_nodes'?"
    assert problem(save(MISSPELT)).hint == f"plugin 'odd', hook 'score_node': {text}"


def test_a_file_that_is_no_text_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "odd.py"
    path.write_bytes(b"\xff\xfe\x00")
    assert "expected Python that can be imported" in str(problem(str(path)))


@pytest.mark.parametrize("source", ["no_such_module:Night", "no_such_module", "policy.yaml", ""])
def test_a_module_that_is_not_there(source: Any) -> None:
    assert "expected Python that can be imported" in str(problem(source))


def test_a_module_that_is_not_there_may_be_meant_as_a_file() -> None:
    assert problem("no_such_module:Night").hint.endswith("with its suffix, as in policy.py")
