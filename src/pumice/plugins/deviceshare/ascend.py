"""Ascend cards (HAMi): chips cut by template, or shared in software (``hami-core``).

Each kind of chip has its own mode of sharing, with its own resources and annotations.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import msgspec

from pumice.api.meta import Part
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.api.quantity import value
from pumice.plugins.deviceshare.cards import (
    ALL_CORES,
    BINPACK,
    MOST_CARDS,
    SPREAD,
    CardUse,
    Choice,
    Grant,
    Held,
    Lack,
    amount_asked,
    lacks_of,
    read_slices,
)
from pumice.plugins.deviceshare.device_config import AscendChip

HAMI = "hami.io"
NODE, TIME = f"{HAMI}/vgpu-node", f"{HAMI}/vgpu-time"
BIND_PHASE, BIND_TIME = f"{HAMI}/bind-phase", f"{HAMI}/bind-time"
PREDICATE_TIME = "predicate-time"
LOCK = f"{HAMI}/mutex.lock"
SHARES_BY, HAMI_CORE = "huawei.com/vnpu-mode", "hami-core"
NODE_SHARES = "hami-vnpu-core"
_NETWORKED = "Ascend910"
_NETWORK_SCORE = 10.0


class AscendCard(Part):
    """One card, as its node registers it."""

    id: str
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    health: bool = True
    custominfo: dict[str, Any] | None = None

    @property
    def network(self) -> int | None:
        """The network that connects it with others, None if not stated."""
        found = (self.custominfo or {}).get("NetworkID")
        return int(found) if isinstance(found, int | float) else None


@dataclass(frozen=True)
class AscendCards:
    """The healthy cards of a node in the order it lists them."""

    cards: tuple[AscendCard, ...]
    in_software: bool
    """Whether pods may share them in software."""

    @property
    def whole(self) -> int:
        """The memory of the first card, 0 if there is none."""
        return self.cards[0].devmem if self.cards else 0

    @property
    def networked(self) -> bool:
        """Whether all of them state their network."""
        return all(card.network is not None for card in self.cards)


@dataclass(frozen=True, slots=True)
class AscendPart:
    """The request of one container for each of some cards; no memory: all of it."""

    number: int
    memory: int
    cores: int


@dataclass(frozen=True, slots=True)
class AscendWish:
    """The request of a pod, container by container."""

    parts: tuple[AscendPart, ...]
    in_software: bool


@dataclass(frozen=True)
class AscendSharing:
    """Cards of one kind of chip."""

    chip: AscendChip
    policy: str = ""
    in_software: bool = False
    """Whether nodes share cards in software unless they state otherwise."""
    lock: str = LOCK
    phase: tuple[str, str] = (BIND_PHASE, BIND_TIME)

    @property
    def family(self) -> str:
        """The kind of chip."""
        return self.chip.common_word

    def refusal(self, cards: AscendCards, wish: AscendWish) -> int:
        """Return the number of the reason: the second one is that no card can be cut so."""
        can_be_cut = all(self._cut(cards, wish, part) is not None for part in wish.parts)
        return 5 if can_be_cut else 6

    def read_node(self, node: Node) -> AscendCards | None:
        """Read the cards that a node has registered; a malformed list counts as none.

        A node with unhealthy cards alone has cards, of which none can be chosen.
        """
        offered, marks = node.status.allocatable, node.metadata.annotations
        name = self.chip.resource_name
        if name not in offered or not value(offered[name]):
            return None
        listed = _registered(marks.get(f"{HAMI}/node-register-{self.family}", ""))
        cards = tuple(card for card in listed if card.health)
        stated = marks.get(NODE_SHARES)
        in_software = self.in_software if stated is None else stated == "true"
        return AscendCards(cards, in_software) if 0 < len(listed) <= MOST_CARDS else None

    def read_wish(self, pod: Pod) -> AscendWish | None:
        """Read limits of containers, and the pod's mode of sharing."""
        parts = tuple(self._parts(pod))
        in_software = pod.metadata.annotations.get(SHARES_BY) == HAMI_CORE
        return AscendWish(parts, in_software) if parts else None

    def _parts(self, pod: Pod) -> Iterator[AscendPart]:
        count, size = self.chip.resource_name, self.chip.resource_memory_name
        for container in pod.spec.containers:
            limits = container.resources.limits
            if count in limits or size in limits:
                number = value(limits[count]) if count in limits else 1
                memory = amount_asked(container, size) or 0
                cores = amount_asked(container, f"{count}-core") or 0
                yield AscendPart(number, memory, cores)

    def read_grants(self, cards: AscendCards, pod: Pod, key: str) -> Held:
        """Read the cards that were written on a pod."""
        index = {card.id: i for i, card in enumerate(cards.cards)}
        text = pod.metadata.annotations.get(f"{HAMI}/{self.family}-devices-allocated", "")
        return tuple(
            Grant(index[name], key, memory, cores, family=self.family)
            for name, memory, cores in read_slices(text)
            if name in index
        )

    def choose(self, cards: AscendCards, wish: AscendWish, held: Held, pod: str) -> Choice | None:
        """Assign cards to every container; no two containers of a pod share one."""
        uses, grants, score = self._by_policy(cards, wish, held), [], 0.0
        taken: set[int] = set()
        for number, raw in enumerate(wish.parts):
            part = self._cut(cards, wish, raw)
            if part is None or (wish.in_software and not cards.in_software):
                return None
            fitting = [
                use
                for use in uses
                if use.index not in taken and use.lack(part.memory, part.cores) is None
            ]
            if len(fitting) < part.number:
                return None
            chosen = self._together(cards, fitting)[: max(part.number, 0)]
            taken |= {use.index for use in chosen}
            score += sum(map(self._score, chosen))
            grants += [
                Grant(use.index, pod, part.memory, part.cores, number, family=self.family)
                for use in chosen
            ]
        return Choice(tuple(grants), score + self._network_score(cards, grants))

    def _cut(self, cards: AscendCards, wish: AscendWish, part: AscendPart) -> AscendPart | None:
        """Round memory up to what a chip can be cut into; None if that is impossible."""
        memory = part.memory or cards.whole
        if wish.in_software:
            return replace(part, memory=memory)
        size, _ = self._size(memory)
        if size is None or (part.number > 1 and size != self.chip.memory_allocatable):
            return None
        return replace(part, memory=size)

    def _size(self, memory: int) -> tuple[int | None, str]:
        """Return the smallest size with enough memory, and its template; a whole chip has none."""
        for template in sorted(self.chip.templates, key=lambda each: each.memory):
            if memory <= template.memory:
                return template.memory, template.name
        return (self.chip.memory_allocatable if memory <= self.chip.memory_capacity else None), ""

    def _by_policy(self, cards: AscendCards, wish: AscendWish, held: Held) -> list[CardUse]:
        """Order cards: fullest first, idle ones first, or as listed."""
        uses = [
            CardUse(
                i, one.id, one.count, one.devmem, ALL_CORES if wish.in_software else one.devcore
            )
            for i, one in enumerate(cards.cards)
        ]
        for grant in held:
            uses[grant.card].add(grant)
        return sorted(uses, key=lambda use: -self._score(use))

    def _score(self, use: CardUse) -> float:
        """Reward a card that is in use, or one that is idle."""
        if not use.whole:
            return 0.0
        if self.policy == BINPACK:
            return 100.0 * use.memory / use.whole
        return 100.0 if self.policy == SPREAD and not use.number else 0.0

    def _together(self, cards: AscendCards, fitting: list[CardUse]) -> list[CardUse]:
        """Put cards of the network with the most of them first, where there are networks.

        Of equal networks, the one with the best card comes first.
        """
        if not (self.family.startswith(_NETWORKED) and cards.networked):
            return fitting
        networks: dict[int | None, list[CardUse]] = {}
        for use in fitting:
            networks.setdefault(cards.cards[use.index].network, []).append(use)
        return [use for each in sorted(networks.values(), key=len, reverse=True) for use in each]

    def _network_score(self, cards: AscendCards, grants: list[Grant]) -> float:
        """Reward cards of one network."""
        if not (grants and self.family.startswith(_NETWORKED) and cards.networked):
            return 0.0
        networks = [cards.cards[grant.card].network for grant in grants]
        most = max(networks.count(each) for each in networks)
        return _NETWORK_SCORE * most / len(networks)

    def lacks(self, cards: AscendCards, wish: AscendWish, held: Held) -> list[Lack]:
        """Return what each card lacks for the first container that does not get its own."""
        if wish.in_software and not cards.in_software:
            return [Lack("", "does not share its cards by hami-core")]
        for number in range(1, len(wish.parts) + 1):
            raw = wish.parts[number - 1]
            part = self._cut(cards, wish, raw)
            if part is None:
                return [self._uncut(raw)]
            first = replace(wish, parts=wish.parts[:number])
            if self.choose(cards, first, held, "") is None:
                uses = self._by_policy(cards, wish, held)
                return lacks_of([use.lack(part.memory, part.cores) for use in uses], part.number)
        return []

    def _uncut(self, part: AscendPart) -> Lack:
        if part.memory > self.chip.memory_capacity:
            return Lack("", "memory on one card", part.memory, self.chip.memory_capacity)
        return Lack("", f"gives {part.number} cards only as a whole, not {part.memory} of each")

    def annotations(
        self, choice: Choice, cards: AscendCards, wish: AscendWish, node: str, now: float
    ) -> dict[str, str]:
        """Write the cards for the device plugin, and the template or share of each."""
        second, listed = str(int(now)), self._listed(choice, cards, len(wish.parts))
        runtime = [self._runtime(grant, cards, wish) for grant in choice.grants]
        return {
            f"{HAMI}/{self.family}-devices-to-allocate": listed,
            f"{HAMI}/{self.family}-devices-allocated": listed,
            f"huawei.com/{self.family}": json.dumps(runtime, separators=(",", ":")),
            PREDICATE_TIME: second,
            NODE: node,
            TIME: second,
            BIND_PHASE: "allocating",
            BIND_TIME: second,
        }

    def _listed(self, choice: Choice, cards: AscendCards, containers: int) -> str:
        texts = [""] * containers
        for grant in choice.grants:
            name = cards.cards[grant.card].id
            texts[grant.container] += f"{name},{self.family},{grant.memory},{grant.cores}:"
        return "".join(f"{text};" for text in texts)

    def _runtime(self, grant: Grant, cards: AscendCards, wish: AscendWish) -> dict[str, Any]:
        """Write the runtime's settings, without empty ones."""
        runtime: dict[str, Any] = {"UUID": cards.cards[grant.card].id}
        if wish.in_software:
            runtime |= {"memory": grant.memory, "core": grant.cores}
        else:
            runtime["temp"] = self._size(grant.memory)[1]
        return {key: content for key, content in runtime.items() if content}


@lru_cache(maxsize=1024)
def _registered(text: str) -> tuple[AscendCard, ...]:
    """Read the list of a node's cards; a malformed one counts as none."""
    try:
        return msgspec.json.decode(text, type=tuple[AscendCard, ...])
    except msgspec.DecodeError:
        return ()
