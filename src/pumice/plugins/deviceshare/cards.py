"""What the two ways of sharing cards have in common: cards, what pods hold of them, wishes.

Everything here is immutable, so that what a node holds can be kept in a journal as one value.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

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
    container: int = 0
    """Which of the pod's containers with a wish holds it."""
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


CardsT = TypeVar("CardsT")
WishT = TypeVar("WishT")


class Sharing(Protocol[CardsT, WishT]):
    """One way of sharing cards; wishes are hashable, and equal ones get equal answers."""

    @property
    def refusal(self) -> int:
        """Give the number of the reason for a node that has not enough."""

    @property
    def lock(self) -> str:
        """Name the annotation by which a node is locked while its device plugin works."""

    def read_node(self, node: Node) -> CardsT | None:
        """Read the cards of a node, None if it has none."""

    def read_wish(self, pod: Pod) -> WishT | None:
        """Read what a pod asks for, None if it asks for no card."""

    def read_grants(self, cards: CardsT, pod: Pod, key: str) -> Held:
        """Read what a pod on the node holds, from its annotations."""

    def choose(self, cards: CardsT, wish: WishT, held: Held, pod: str) -> Choice | None:
        """Pick cards for a pod, None if there are not enough."""

    def annotations(self, choice: Choice, cards: CardsT, node: str, now: float) -> dict[str, str]:
        """Write the choice down for the device plugin of the node."""
