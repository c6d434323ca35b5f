"""Shared by all modes of sharing cards: cards, grants to pods, requests.

Everything here is immutable, so that the grants of a node can be journaled as one value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pumice.api.nodes import Node
from pumice.api.pods import Container, Pod
from pumice.api.quantity import value

MOST_CARDS = 1024
"""More than any machine has; a node that claims more is ignored."""
BINPACK, SPREAD = "binpack", "spread"
ALL_CORES = 100


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
    """A pod's part of one card; a pod may hold several, of one card or of many."""

    card: int
    pod: str
    memory: int = 0
    cores: int = 0
    container: int = 0
    """The index of the holding container among those with a request."""
    group: str = ""
    """The pod group, as ``namespace/name``."""
    rules: frozenset[int] = frozenset()
    """The exclusive rules that apply to the pod."""
    instance: MigInstance | None = None
    asked: int = 0
    """The requested memory, where an instance has more."""
    family: str = ""
    """The mode of sharing, where a node may have cards of several."""


Held = tuple[Grant, ...]
"""All grants on the cards of one node."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The cards that a node would assign, and the quality of that choice."""

    grants: Held
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Lack:
    """What one card, or a node as a whole, lacks."""

    card: str
    """Empty: not about one card."""
    what: str
    """A resource, or the problem in words."""
    wanted: int = 0
    left: int = 0

    def __str__(self) -> str:
        text = self.what
        if self.wanted:
            text = f"has {self.left} of the {self.wanted} {self.what} wanted"
        return f"card {self.card} {text}" if self.card else text


@dataclass(slots=True)
class CardUse:
    """How much of one card is held."""

    index: int
    name: str
    shares: int
    """How many may share it."""
    whole: int
    """Its memory."""
    total: int = ALL_CORES
    number: int = 0
    memory: int = 0
    cores: int = 0

    def add(self, grant: Grant) -> None:
        """Count a grant."""
        self.number += 1
        self.memory += grant.memory
        self.cores += grant.cores

    def lack(self, memory: int, cores: int) -> Lack | None:
        """Return the first thing that is short for a part of it."""
        if self.number >= self.shares:
            return Lack(self.name, "shares", self.number + 1, self.shares)
        if self.whole - self.memory < memory:
            return Lack(self.name, "memory", memory, self.whole - self.memory)
        if self.total - self.cores < cores:
            return Lack(self.name, "cores", cores, self.total - self.cores)
        if self.total == cores == ALL_CORES and self.number:  # all cores means the card alone
            return Lack(self.name, "has other pods, and all of its cores are wanted")
        if self.total and self.cores == self.total and not cores:
            return Lack(self.name, "has no cores left")
        return None


def lacks_of(found: Sequence[Lack | None], wanted: int) -> list[Lack]:
    """List what cards lack; first how many lack nothing, where these are too few."""
    short = [each for each in found if each is not None]
    roomy = len(found) - len(short)
    return [*([Lack("", "cards with room", wanted, roomy)] if roomy else []), *short]


CardsT = TypeVar("CardsT")
WishT = TypeVar("WishT")


class Sharing(Protocol[CardsT, WishT]):
    """One mode of sharing cards; requests are hashable, and equal ones get equal answers."""

    @property
    def family(self) -> str:
        """The name of the mode, as in the grants of its cards."""

    def refusal(self, cards: CardsT, wish: WishT) -> int:
        """Return the number of the reason for a node that has not enough."""

    @property
    def lock(self) -> str:
        """The annotation that locks a node while its device plugin works."""

    @property
    def phase(self) -> tuple[str, str]:
        """The annotations of a pod with the state of its device plugin, and since when."""

    def read_node(self, node: Node) -> CardsT | None:
        """Read the cards of a node, None if it has none."""

    def read_wish(self, pod: Pod) -> WishT | None:
        """Read the request of a pod, None if it asks for no card."""

    def read_grants(self, cards: CardsT, pod: Pod, key: str) -> Held:
        """Read the grants of a pod on the node, from its annotations."""

    def choose(self, cards: CardsT, wish: WishT, held: Held, pod: str) -> Choice | None:
        """Pick cards for a pod, None if there are not enough."""

    def lacks(self, cards: CardsT, wish: WishT, held: Held) -> list[Lack]:
        """Return what cards lack for a request that they cannot serve together."""

    def annotations(
        self, choice: Choice, cards: CardsT, wish: WishT, node: str, now: float
    ) -> dict[str, str]:
        """Write the choice for the device plugin of the node."""


def amount_asked(container: Container, name: str) -> int | None:
    """Read a limit, else a request."""
    limits, requests = container.resources.limits, container.resources.requests
    amount = limits.get(name, requests.get(name))
    return None if amount is None else value(amount)


def read_count(text: str) -> int:
    """Read a count; anything else counts as none."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def read_slices(text: str) -> list[tuple[str, int, int]]:
    """Read "uuid,type,memory,cores:" of each container; containers are separated by semicolons."""
    found = []
    for entry in text.replace(";", ":").split(":"):
        fields = entry.split(",")
        if len(fields) >= 4 and fields[2].isdecimal() and fields[3].isdecimal():
            found.append((fields[0], read_count(fields[2]), read_count(fields[3])))
    return found
