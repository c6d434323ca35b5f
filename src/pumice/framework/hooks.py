"""The definition of a hook: one row from which everything about it follows.

The base class of plugins declares each hook where it declares the method, in one place; binding,
checking, the documentation and the conformance tests read the row.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, get_type_hints

from pumice.framework.combining import Ask, Rule
from pumice.framework.hook_answers import Answer

_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Hook:
    """One extension point."""

    method: Callable[..., Any]
    """The method of the base class: its name, signature and documentation are the hook's."""
    rule: Rule
    """How the answers of several plugins become one."""
    answer: Answer
    """The form of a valid answer, and the answer used if a plugin fails."""
    volcano: str
    """Volcano's name for it."""
    switch: str = ""
    """The key of the configuration file that turns it off; empty: cannot be turned off."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.__name__

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The types of its parameters by name."""
        types = get_type_hints(self.method)
        types.pop("return")
        return types

    @cached_property
    def unanswered(self) -> Ask:
        """The question where no plugin answers it."""
        return self.rule.bind(())


@dataclass(frozen=True)
class HookTable:
    """The hooks of a class by name, in the order of its methods."""

    rows: dict[str, Hook] = field(default_factory=dict)

    def add(
        self, rule: Rule, answer: Answer, *, volcano: str, switch: str = ""
    ) -> Callable[[_Method], _Method]:
        """Declare the method below as a hook."""

        def declare(method: _Method) -> _Method:
            self.rows[method.__name__] = Hook(method, rule, answer, volcano, switch)
            return method

        return declare
