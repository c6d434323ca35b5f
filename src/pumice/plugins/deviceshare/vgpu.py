"""Virtual GPUs (HAMi): slices of memory and cores of cards that the node lists by uuid."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pumice.api.annotations import GROUP_NAME
from pumice.api.nodes import Node
from pumice.api.pods import Container, Pod
from pumice.api.quantity import value
from pumice.plugins.deviceshare.cards import MOST_CARDS, Choice, Grant, Held

MEMORY, CORES = "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
NUMBER, PERCENT = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory-percentage"
REGISTER = "volcano.sh/node-vgpu-register"
IDS, TO_ALLOCATE = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
NODE, TIME = "volcano.sh/vgpu-node", "volcano.sh/vgpu-time"
BIND_PHASE, BIND_TIME = "volcano.sh/bind-phase", "volcano.sh/bind-time"
ALLOCATING = "allocating"
MODE, GROUP_POLICY = "volcano.sh/vgpu-mode", "volcano.sh/vgpu-podgroup-policy"
USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, AVOID_UUID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
VENDOR, HAMI = "NVIDIA", "hami-core"
BINPACK, SPREAD = "binpack", "spread"
_ALL_CORES = 100


@dataclass(frozen=True, slots=True)
class VirtualCard:
    """One card and how many may share it."""

    uuid: str
    shares: int
    memory: int
    kind: str


@dataclass(frozen=True, slots=True)
class Slice:
    """What one container wants of each of some cards."""

    number: int
    memory: int
    percent: int | None
    cores: int

    def memory_of(self, card: VirtualCard) -> int:
        """Say how much memory of a card is wanted."""
        return self.memory if self.percent is None else card.memory * self.percent // 100


@dataclass(frozen=True, slots=True)
class VirtualWish:
    """What a pod wants, container by container, and which cards it takes."""

    slices: tuple[Slice, ...]
    mode: str | None = None
    use_types: tuple[str, ...] | None = None
    avoid_types: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    avoid_uuids: tuple[str, ...] = ()
    group: str = ""
    spread_group: bool = False
    rules: frozenset[int] = frozenset()

    def accepts(self, card: VirtualCard) -> bool:
        """Say whether a card is of the right make and not ruled out by its uuid."""
        if self.use_uuids and card.uuid not in self.use_uuids:
            return False
        kind = card.kind.upper()
        if card.uuid in self.avoid_uuids or VENDOR not in kind:
            return False
        if self.use_types is not None:
            return any(part in kind for part in self.use_types)
        return not any(part in kind for part in self.avoid_types)


@dataclass(frozen=True)
class VirtualCards:
    """The healthy cards of a node, in the order it lists them."""

    cards: tuple[VirtualCard, ...]


class _Use:
    """How much of one card is held."""

    def __init__(self, index: int, card: VirtualCard) -> None:
        self.index = index
        self.card = card
        self.number = self.memory = self.cores = 0
        self.grants: list[Grant] = []

    def add(self, grant: Grant) -> None:
        self.number += 1
        self.memory += grant.memory
        self.cores += grant.cores
        self.grants.append(grant)

    def has_room(self, part: Slice) -> bool:
        """Say whether a slice can be cut; all cores means the card alone."""
        if self.number >= self.card.shares:
            return False
        if self.card.memory - self.memory < part.memory_of(self.card):
            return False
        if self.cores + part.cores > _ALL_CORES:
            return False
        if part.cores == _ALL_CORES and self.number:
            return False
        return not (self.cores == _ALL_CORES and part.cores == 0)

    def suits(self, wish: VirtualWish) -> bool:
        """Say whether the card is one the pod takes, with neighbours it bears."""
        if not wish.accepts(self.card):
            return False
        if any(grant.rules & wish.rules for grant in self.grants):
            return False
        alone = wish.spread_group and wish.group
        return not alone or all(grant.group != wish.group for grant in self.grants)


@dataclass(frozen=True)
class VirtualSharing:
    """Cards cut into slices of memory and cores."""

    policy: str = ""
    exclusive: tuple[Mapping[str, str], ...] = ()
    """Labels; of the pods that have all of one entry no two share a card."""
    refusal: int = 3
    lock: str = "hamivgpu"

    def read_node(self, node: Node) -> VirtualCards | None:
        """Read the cards that a node has registered; a malformed list is no list."""
        offered = node.status.allocatable
        if not all(name in offered and value(offered[name]) for name in (NUMBER, CORES, MEMORY)):
            return None
        cards = []
        for entry in node.metadata.annotations.get(REGISTER, "").split(":"):
            fields = entry.split(",")
            if len(fields) == 1:
                continue
            if len(fields) < 6:
                return None
            uuid, shares, memory, kind, health = fields[:5]
            if health.lower() in ("true", "t", "1"):
                cards.append(VirtualCard(uuid, _number(shares), _number(memory), kind))
        return VirtualCards(tuple(cards)) if 0 < len(cards) <= MOST_CARDS else None

    def read_wish(self, pod: Pod) -> VirtualWish | None:
        """Read limits, and the annotations that narrow the choice of cards."""
        slices = tuple(_slices(pod))
        if not slices:
            return None
        marks = pod.metadata.annotations
        use = marks.get(USE_TYPE)
        return VirtualWish(
            slices=slices,
            mode=marks.get(MODE),
            use_types=None if use is None else tuple(use.upper().split(",")),
            avoid_types=tuple(t for t in marks.get(AVOID_TYPE, "").upper().split(",") if t),
            use_uuids=_names(marks.get(USE_UUID, "")),
            avoid_uuids=_names(marks.get(AVOID_UUID, "")),
            group=_group_of(pod),
            spread_group=marks.get(GROUP_POLICY) == SPREAD,
            rules=self.rules_of(pod),
        )

    def rules_of(self, pod: Pod) -> frozenset[int]:
        """Give the exclusive rules whose labels a pod has."""
        labels = pod.metadata.labels
        return frozenset(
            i
            for i, rule in enumerate(self.exclusive)
            if all(labels.get(key) == text for key, text in rule.items())
        )

    def read_grants(self, cards: VirtualCards, pod: Pod, key: str) -> Held:
        """Read the slices that were written on a pod."""
        index = {card.uuid: i for i, card in enumerate(cards.cards)}
        group, rules = _group_of(pod), self.rules_of(pod)
        return tuple(
            Grant(index[uuid], key, memory, cores, group=group, rules=rules)
            for uuid, memory, cores in _read_slices(pod.metadata.annotations.get(IDS, ""))
            if uuid in index
        )

    def choose(self, cards: VirtualCards, wish: VirtualWish, held: Held, pod: str) -> Choice | None:
        """Give every container its slices; a container takes no card twice."""
        if wish.mode not in (None, HAMI):
            return None
        grants: list[Grant] = []
        score = 0.0
        for number, part in enumerate(wish.slices):
            uses = self._by_policy(cards, (*held, *grants))
            fitting = [use for use in uses if use.has_room(part) and use.suits(wish)]
            if len(fitting) < part.number:
                return None
            for use in fitting[: part.number]:
                memory = part.memory_of(use.card)
                grants.append(
                    Grant(use.index, pod, memory, part.cores, number, wish.group, wish.rules)
                )
                score += self._score(use, memory)
        return Choice(tuple(grants), score)

    def _by_policy(self, cards: VirtualCards, held: Held) -> list[_Use]:
        """Order cards: fullest first, least shared first, or last listed first."""
        uses = [_Use(i, card) for i, card in enumerate(cards.cards)]
        for grant in held:
            uses[grant.card].add(grant)
        if self.policy == BINPACK:
            return sorted(uses, key=lambda use: (-use.memory, use.index))
        if self.policy == SPREAD:
            return sorted(uses, key=lambda use: (use.number, use.index))
        return uses[::-1]

    def _score(self, use: _Use, memory: int) -> float:
        """Reward a card that gets full, or one that was idle."""
        if self.policy == BINPACK:
            return 100.0 * (use.memory + memory) / use.card.memory if use.card.memory else 0.0
        return 100.0 if self.policy == SPREAD and use.number == 0 else 0.0

    def annotations(
        self, choice: Choice, cards: VirtualCards, node: str, now: float
    ) -> dict[str, str]:
        """Tell the device plugin the slices; it sets the phase when it has cut them."""
        second = str(int(now))
        ids: dict[int, str] = {}
        for grant in choice.grants:
            uuid = cards.cards[grant.card].uuid
            entry = f"{uuid},{VENDOR},{grant.memory},{grant.cores}:"
            ids[grant.container] = ids.get(grant.container, "") + entry
        listed = ";".join(ids.values())
        return {
            NODE: node,
            TIME: second,
            IDS: listed,
            TO_ALLOCATE: listed,
            BIND_PHASE: ALLOCATING,
            BIND_TIME: second,
        }


def _slices(pod: Pod) -> Iterator[Slice]:
    for container in pod.spec.containers:
        limits = container.resources.limits
        if NUMBER not in limits and MEMORY not in limits:
            continue
        number = value(limits[NUMBER]) if NUMBER in limits else 1
        memory, percent = _amount(container, MEMORY), _amount(container, PERCENT)
        if percent is None and not memory:
            percent = 100
        yield Slice(number, memory or 0, percent, _amount(container, CORES) or 0)


def _amount(container: Container, name: str) -> int | None:
    """Read a limit, else a request."""
    limits, requests = container.resources.limits, container.resources.requests
    amount = limits.get(name, requests.get(name))
    return None if amount is None else value(amount)


def _read_slices(text: str) -> Iterator[tuple[str, int, int]]:
    """Read "uuid,type,memory,cores:" of each container; containers are apart by semicolons."""
    for entry in text.replace(";", ":").split(":"):
        fields = entry.split(",")
        if len(fields) >= 4 and fields[2].isdecimal() and fields[3].isdecimal():
            yield fields[0].partition("[")[0], _number(fields[2]), _number(fields[3])


def _number(text: str) -> int:
    """Read a count; anything else is none."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _group_of(pod: Pod) -> str:
    group = pod.metadata.annotations.get(GROUP_NAME, "")
    return f"{pod.metadata.namespace}/{group}" if group else ""
