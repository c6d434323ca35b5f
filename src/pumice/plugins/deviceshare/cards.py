"""What the two ways of sharing cards have in common: cards, what pods hold of them, wishes.

Everything here is immutable, so that what a node holds can be kept in a journal as one value.
"""

from dataclasses import dataclass
from typing import Protocol

from pumice.api.nodes import Node
from pumice.api.pods import Pod

MOST_CARDS = 1024
"""More than any machine has; a node that claims more is not believed."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a pod holds of one card; a pod may hold several, of one card or of many."""

    card: int
    pod: str
    memory: int = 0
    cores: int = 0
    group: str = ""
    """The pod group, as ``namespace/name``."""
    rules: frozenset[int] = frozenset()
    """The exclusive rules that the pod falls under."""


Held = tuple[Grant, ...]
"""All that is held of the cards of one node."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The cards a node would give, and how good a choice that is."""

    grants: Held
    score: float = 0.0


class Wish(Protocol):
    """What a pod asks of cards; equal wishes get equal answers."""

    def __hash__(self) -> int: ...


class Cards(Protocol):
    """The cards of one node."""

    def choose(self, pod: str, wish: Wish, held: Held) -> Choice | None:
        """Pick cards for a pod, None if there are not enough."""
        ...

    def held_by(self, pod: Pod, key: str) -> Held:
        """Read what a pod that is on the node holds."""
        ...


class Sharing(Protocol):
    """One way of sharing cards."""

    refusal: int
    """The number of the reason for a node that has not enough."""

    def read_node(self, node: Node) -> Cards | None:
        """Read the cards of a node, None if it has none."""
        ...

    def read_wish(self, pod: Pod) -> Wish | None:
        """Read what a pod asks for, None if it asks for no card."""
        ...

    def annotations(self, choice: Choice, node: str, cards: Cards, now: float) -> dict[str, str]:
        """Write the choice down for the device plugin of the node."""
        ...
