"""Circles of imports are found wherever an import hides."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.import_cycles import circles, import_graph, main


def package(folder: Path, files: Mapping[str, str]) -> Path:
    root = folder / "made"
    for name, text in {"__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


BACK = "from made.a import A\n"


@pytest.mark.parametrize(
    "hidden",
    [
        "from made.b import B\n",
        "from made import b\n",
        "import made.b\n",
        "import made.b as other\n",
        "from . import b\n",
        "from .b import B\n",
        "def f():\n    from made.b import B\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.b import B\n",
        "try:\n    import made.b\nexcept ImportError:\n    pass\n",
        "import importlib\nB = importlib.import_module('made.b').B\n",
        "def f(x: 'made.b.B') -> None: ...\n",
        "def f() -> 'list[made.b.B] | None': ...\n",
        "x: list['made.b.B']\n",
    ],
)
def test_a_circle_of_two_is_found(tmp_path: Path, hidden: str) -> None:
    root = package(tmp_path, {"a.py": hidden, "b.py": BACK})
    assert circles(import_graph(root)) == [["made.a", "made.b", "made.a"]]


@pytest.mark.parametrize(
    "harmless",
    [
        "",
        "import made\n",
        "import b\n",
        "from other.b import B\n",
        "x = 'made.b'\n",
        "def f(x: 'A') -> None: ...\n",
        "from typing import Literal\nx: Literal['a b', 'made']\n",
    ],
)
def test_what_imports_nothing_of_the_other_is_no_circle(tmp_path: Path, harmless: str) -> None:
    root = package(tmp_path, {"a.py": harmless, "b.py": BACK})
    assert circles(import_graph(root)) == []


def test_a_package_that_gathers_its_modules_is_a_circle_only_if_they_ask_it_back(
    tmp_path: Path,
) -> None:
    files = {"sub/__init__.py": "from made.sub.x import X\n", "sub/x.py": "X = 1\n"}
    assert circles(import_graph(package(tmp_path, files))) == []
    files["sub/x.py"] = "from made.sub import X\n"
    assert circles(import_graph(package(tmp_path, files))) == [
        ["made.sub", "made.sub.x", "made.sub"]
    ]


def test_each_group_is_reported_once_by_its_shortest_circle(tmp_path: Path) -> None:
    files = {
        "a.py": "import made.b\n",
        "b.py": "import made.c\n",
        "c.py": "import made.a\nimport made.b\n",
        "x.py": "import made.y\nimport made.a\n",
        "y.py": "import made.x\n",
    }
    assert circles(import_graph(package(tmp_path, files))) == [
        ["made.b", "made.c", "made.b"],
        ["made.x", "made.y", "made.x"],
    ]


def test_the_check_names_lines_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = package(tmp_path, {"a.py": "\n\nimport made.b\n", "b.py": BACK})
    assert main([str(root)]) == 1
    assert capsys.readouterr().out == (
        "circle of imports: made.a -> made.b -> made.a\n"
        "  made.a, line 3: imports made.b\n"
        "  made.b, line 1: imports made.a\n"
    )
    (root / "b.py").write_text("", encoding="utf-8")
    assert main([str(root)]) == 0
    assert capsys.readouterr().out == ""
