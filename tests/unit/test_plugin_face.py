"""`pumice.plugin`: every name that the author of a plugin needs, and what it is."""

import inspect
import re
from typing import Any

import pytest

import pumice.plugin as face
from pumice.framework.plugin import HOOKS, Plugin

BUILT_IN = {
    "Callable",
    *("None", "list", "dict", "int", "float", "bool", "str"),
    *("Hashable", "Iterable", "Mapping", "NDArray", "np"),
}


def names_in(annotation: Any) -> Any:
    """Read the names of types out of an annotation, evaluated or not."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return {name.rpartition(".")[2] for name in re.findall(r"[A-Za-z_][\w.]*", text)}


METHODS = [
    name for name, _ in inspect.getmembers(Plugin, inspect.isfunction) if not name.startswith("_")
]


def test_hooks_are_among_the_methods() -> None:
    assert set(HOOKS) <= set(METHODS)


@pytest.mark.parametrize("hook", METHODS)
def test_every_type_in_the_signature_of_a_hook_can_be_imported(hook: Any) -> None:
    signature = inspect.signature(getattr(Plugin, hook))
    annotations = [each.annotation for name, each in signature.parameters.items() if name != "self"]
    annotations.append(signature.return_annotation)
    assert inspect.Signature.empty not in annotations
    written = {name for each in annotations for name in names_in(each)}
    # a column, a mask or codes are arrays of NumPy once they are evaluated
    arrays = {"ndarray", "dtype", "float64", "bool", "int16", "int32", "int64", "tuple", "Any"}
    assert written - BUILT_IN - arrays <= set(face.__all__)


def test_the_docstring_is_a_table_of_contents() -> None:
    reported = set(re.findall(r"``(\w+)``", face.__doc__))
    assert set(face.__all__) - reported == set()


def test_what_is_exported_says_what_it_is() -> None:
    silent = [
        name
        for name in face.__all__
        if callable(getattr(face, name)) and not inspect.getdoc(getattr(face, name))
    ]
    assert silent == []
