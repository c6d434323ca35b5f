"""GPU sharing as in Volcano's own device plugin: a slice of one card's memory, or whole cards."""

from dataclasses import dataclass

from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.api.quantity import value
from pumice.plugins.deviceshare.cards import MOST_CARDS, Choice, Grant, Held, Lack

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
INDEX = "volcano.sh/gpu-index"
PREDICATE_TIME = "volcano.sh/predicate-time"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"


@dataclass(frozen=True, slots=True)
class GpuWish:
    """Memory of one card, or a number of whole cards."""

    memory: int = 0
    number: int = 0


@dataclass(frozen=True)
class GpuCards:
    """Healthy cards of a node by number; all have the same memory."""

    ids: tuple[int, ...]
    memory: int


@dataclass(frozen=True)
class GpuSharing:
    """Cards split by memory, or allocated whole."""

    by_memory: bool
    family: str = "gpu"
    lock: str = "gpu"
    phase: tuple[str, str] = ("", "")

    def refusal(self, _cards: GpuCards, _wish: GpuWish) -> int:
        """Return the number of the reason: memory is the first, number the second."""
        return 1 if self.by_memory else 2

    def read_node(self, node: Node) -> GpuCards | None:
        """Split the node's total memory evenly over its cards."""
        capacity = node.status.capacity
        if MEMORY not in capacity or NUMBER not in capacity:
            return None
        number = value(capacity[NUMBER])
        if not 0 < number <= MOST_CARDS:
            return None
        parts = node.metadata.annotations.get(UNHEALTHY, "").split(",")
        broken = {int(part) for part in parts if part.isdecimal() and len(part) < 10}
        ids = tuple(i for i in range(number) if i not in broken)
        return GpuCards(ids, value(capacity[MEMORY]) // number)

    def read_wish(self, pod: Pod) -> GpuWish | None:
        """Add up the limits of a pod's containers."""
        amount = _asked(pod, MEMORY if self.by_memory else NUMBER)
        if amount <= 0:
            return None
        return GpuWish(memory=amount) if self.by_memory else GpuWish(number=amount)

    def read_grants(self, cards: GpuCards, pod: Pod, key: str) -> Held:
        """Read the card numbers that were written on a pod."""
        memory = _asked(pod, MEMORY)
        if not memory and not _asked(pod, NUMBER):
            return ()
        numbers = _numbers(pod.metadata.annotations.get(INDEX, ""))
        return tuple(self._grant(i, key, memory) for i in numbers if i in cards.ids)

    def choose(self, cards: GpuCards, wish: GpuWish, held: Held, pod: str) -> Choice | None:
        """Take the first card with enough memory left, or the first idle ones."""
        if wish.memory:
            left = _memory_left(cards, held)
            roomy = [i for i in cards.ids if left[i] >= wish.memory]
            return Choice((self._grant(roomy[0], pod, wish.memory),)) if roomy else None
        idle = _idle(cards, held)
        if len(idle) < wish.number:
            return None
        return Choice(tuple(self._grant(i, pod) for i in idle[: wish.number]))

    def _grant(self, card: int, pod: str, memory: int = 0) -> Grant:
        return Grant(card, pod, memory=memory, family=self.family)

    def lacks(self, cards: GpuCards, wish: GpuWish, held: Held) -> list[Lack]:
        """Return what is left of each card, or how many are idle."""
        if not wish.memory:
            return [Lack("", "idle cards", wish.number, len(_idle(cards, held)))]
        left = _memory_left(cards, held)
        return [Lack(str(i), "memory", wish.memory, left[i]) for i in cards.ids]

    def annotations(
        self,
        choice: Choice,
        cards: GpuCards,
        wish: GpuWish,
        node: str,
        now: float,
    ) -> dict[str, str]:
        """Write the card numbers for the device plugin."""
        return {
            PREDICATE_TIME: str(round(now * 1e9)),
            INDEX: ",".join(str(grant.card) for grant in choice.grants),
        }


def _memory_left(cards: GpuCards, held: Held) -> dict[int, int]:
    left = dict.fromkeys(cards.ids, cards.memory)
    for grant in held:
        left[grant.card] -= grant.memory
    return left


def _idle(cards: GpuCards, held: Held) -> list[int]:
    taken = {grant.card for grant in held}
    return [i for i in cards.ids if i not in taken]


def _asked(pod: Pod, name: str) -> int:
    """Sum containers; an init container runs alone and only needs as much at that time."""
    own = [value(c.resources.limits.get(name, 0)) for c in pod.spec.containers]
    first = [value(c.resources.limits.get(name, 0)) for c in pod.spec.init_containers]
    return max(sum(own), max(first, default=0))


def _numbers(text: str) -> list[int]:
    """Read card numbers; one bad number voids them all."""
    parts = text.split(",")
    sound = all(part.isdecimal() and len(part) < 10 for part in parts)
    return [int(part) for part in parts] if sound else []
