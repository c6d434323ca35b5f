"""Pumice: a batch scheduler for Kubernetes with Volcano's behaviour, decided on NumPy columns."""

TYPE_CHECKING = False  # typing is large, and Ctrl-C is not handled yet
if TYPE_CHECKING:
    from typing import Any

__version__ = "1.0.0"

_MODULES = {
    "Cluster": "clusters",
    "Explained": "clusters",
    "History": "histories",
    "Recording": "recordings",
    "Repeats": "simulations",
    "Result": "simulations",
    "Results": "simulations",
    "Table": "tables",
    "WhatIf": "clusters",
    "compare": "simulations",
    "explain": "clusters",
    "load": "clusters",
    "nodes": "workloads",
    "record": "recordings",
    "repeat": "simulations",
    "simulate": "simulations",
    "tune": "searches",
    "whatif": "clusters",
    "workload": "workloads",
}
"""Names of the library and where they are; loaded when first used, so that commands start fast.

``__init__.pyi`` has their types.
"""


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        message = f"module 'pumice' has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module  # noqa: PLC0415

    return vars(import_module(f"pumice.library.{_MODULES[name]}"))[name]


def __dir__() -> list[str]:
    return sorted(["__version__", *_MODULES])
