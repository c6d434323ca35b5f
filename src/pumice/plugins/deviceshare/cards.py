"""What all ways of sharing cards have in common: cards, what pods hold of them, wishes.

Everything here is immutable, so that what a node holds can be kept in a journal as one value.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from pumice.api.nodes import Node
from pumice.api.pods import Container, Pod
from pumice.api.quantity import value

MOST_CARDS = 1024
"""More than any machine has; a node that claims more is not believed."""
BINPACK, SPREAD = "binpack", "spread"


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A part of a card that is cut in hardware: its place in one of the card's geometries."""

    group: str
    """The name of the geometry."""
    position: int
    """Counted over all instances of the geometry, in the order in which it lists them."""

    def __str__(self) -> str:
        return f"{self.group}-{self.position}"


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
    instance: MigInstance | None = None
    asked: int = 0
    """The memory that was asked for, where an instance has more."""
    family: str = ""
    """The way of sharing, where a node may have cards of several."""


Held = tuple[Grant, ...]
"""All that is held of the cards of one node."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The cards a node would give, and how good a choice that is."""

    grants: Held
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Lack:
    """What one card, or a node as a whole, has too little of."""

    card: str
    """Empty: not a matter of one card."""
    what: str
    """A resource, or what is wrong in words."""
    wanted: int = 0
    left: int = 0

    def __str__(self) -> str:
        told = self.what
        if self.wanted:
            told = f"has {self.left} of the {self.wanted} {self.what} wanted"
        return f"card {self.card} {told}" if self.card else told


CardsT = TypeVar("CardsT")
WishT = TypeVar("WishT")


class Sharing(Protocol[CardsT, WishT]):
    """One way of sharing cards; wishes are hashable, and equal ones get equal answers."""

    @property
    def family(self) -> str:
        """Name the way, as the grants of its cards do."""

    @property
    def refusal(self) -> int:
        """Return the number of the reason for a node that has not enough."""

    @property
    def lock(self) -> str:
        """Name the annotation by which a node is locked while its device plugin works."""

    @property
    def phase(self) -> tuple[str, str]:
        """Name a pod's annotations that say how far its device plugin is, and since when."""

    def read_node(self, node: Node) -> CardsT | None:
        """Read the cards of a node, None if it has none."""

    def read_wish(self, pod: Pod) -> WishT | None:
        """Read what a pod asks for, None if it asks for no card."""

    def read_grants(self, cards: CardsT, pod: Pod, key: str) -> Held:
        """Read what a pod on the node holds, from its annotations."""

    def choose(self, cards: CardsT, wish: WishT, held: Held, pod: str) -> Choice | None:
        """Pick cards for a pod, None if there are not enough."""

    def lacks(self, cards: CardsT, wish: WishT, held: Held) -> list[Lack]:
        """Return what cards lack for a wish that they cannot serve together."""

    def annotations(
        self, choice: Choice, cards: CardsT, wish: WishT, node: str, now: float
    ) -> dict[str, str]:
        """Write the choice down for the device plugin of the node."""


def amount_asked(container: Container, name: str) -> int | None:
    """Read a limit, else a request."""
    limits, requests = container.resources.limits, container.resources.requests
    amount = limits.get(name, requests.get(name))
    return None if amount is None else value(amount)


def read_count(text: str) -> int:
    """Read a count; anything else is none."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def read_slices(text: str) -> list[tuple[str, int, int]]:
    """Read "uuid,type,memory,cores:" of each container; containers are apart by semicolons."""
    found = []
    for entry in text.replace(";", ":").split(":"):
        fields = entry.split(",")
        if len(fields) >= 4 and fields[2].isdecimal() and fields[3].isdecimal():
            found.append((fields[0], read_count(fields[2]), read_count(fields[3])))
    return found
