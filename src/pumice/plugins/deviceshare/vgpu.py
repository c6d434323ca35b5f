"""Virtual GPUs (HAMi): slices of memory and cores of cards that the node lists by uuid.

A node shares its cards in software (``hami-core``) or cuts them in hardware (``mig``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pumice.api.annotations import GROUP_NAME
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.api.quantity import value
from pumice.plugins.deviceshare.cards import (
    BINPACK,
    MOST_CARDS,
    SPREAD,
    CardUse,
    Choice,
    Grant,
    Held,
    Lack,
    MigInstance,
    amount_asked,
    lacks_of,
    read_count,
    read_slices,
)
from pumice.plugins.deviceshare.device_config import (
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_NUMBER,
    Geometry,
    NvidiaConfig,
)
from pumice.plugins.deviceshare.mig import find_instance, memory_of, read_instance

_OFFERED = (VGPU_NUMBER, VGPU_CORES, VGPU_MEMORY)
"""Resources of a node with virtual cards, whatever pods call them."""
REGISTER = "volcano.sh/node-vgpu-register"
IDS, TO_ALLOCATE = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
NODE, TIME = "volcano.sh/vgpu-node", "volcano.sh/vgpu-time"
BIND_PHASE, BIND_TIME = "volcano.sh/bind-phase", "volcano.sh/bind-time"
ALLOCATING = "allocating"
MODE, GROUP_POLICY = "volcano.sh/vgpu-mode", "volcano.sh/vgpu-podgroup-policy"
USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, AVOID_UUID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
VENDOR, HAMI, MIG = "NVIDIA", "hami-core", "mig"
_NVIDIA = NvidiaConfig()


@dataclass(frozen=True, slots=True)
class VirtualCard:
    """One card and how many may share it."""

    uuid: str
    shares: int
    memory: int
    kind: str
    geometries: tuple[Geometry, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """The request of one container for each of some cards."""

    number: int
    memory: int
    percent: int | None
    cores: int

    def memory_of(self, card: VirtualCard) -> int:
        """Return the requested memory of a card."""
        return self.memory if self.percent is None else card.memory * self.percent // 100


@dataclass(frozen=True, slots=True)
class VirtualWish:
    """The request of a pod, container by container, and the cards it accepts."""

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
        """Return whether a card is of the right model and not excluded by its uuid."""
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
    """The healthy cards of a node, in the order it lists them, and how it shares them."""

    cards: tuple[VirtualCard, ...]
    mode: str = HAMI


class _Use(CardUse):
    """How much of one card is held, and by whom."""

    def __init__(self, index: int, card: VirtualCard) -> None:
        super().__init__(index, card.uuid, card.shares, card.memory)
        self.card = card
        self.grants: list[Grant] = []
        self.of_others: list[Grant] = []
        """Grants of other pods than the one to place."""

    def add(self, grant: Grant) -> None:
        super().add(grant)
        self.grants.append(grant)

    def instance(self, memory: int) -> tuple[MigInstance, int] | None:
        """Find the instance of a card in hardware mode, with its memory."""
        used = {grant.instance for grant in self.grants if grant.instance is not None}
        return find_instance(self.card.geometries, used, memory)

    def unsuited(self, wish: VirtualWish) -> str:
        """Return why the pod does not accept the card; empty if it does."""
        if not wish.accepts(self.card):
            return "is ruled out by the pod's annotations"
        if any(grant.rules & wish.rules for grant in self.of_others):
            return "has a pod of the same exclusive rule"
        if wish.spread_group and wish.group in {grant.group for grant in self.of_others} - {""}:
            return "has a pod of the same group, which spreads"
        return ""


@dataclass(frozen=True)
class VirtualSharing:
    """Cards cut into slices of memory and cores."""

    policy: str = ""
    exclusive: tuple[Mapping[str, str], ...] = ()
    """Labels; no two pods that have all labels of one entry share a card."""
    config: NvidiaConfig = _NVIDIA
    family: str = "vgpu"
    lock: str = "hamivgpu"
    phase: tuple[str, str] = (BIND_PHASE, BIND_TIME)

    def refusal(self, _cards: VirtualCards, _wish: VirtualWish) -> int:
        """Return the number of the reason."""
        return 3

    def read_node(self, node: Node) -> VirtualCards | None:
        """Read the cards that a node has registered; a malformed list counts as none.

        A node with unhealthy cards alone has cards, of which none can be chosen.
        """
        offered = node.status.allocatable
        if not all(name in offered and value(offered[name]) for name in _OFFERED):
            return None
        cards, listed, mode = [], 0, HAMI
        for entry in node.metadata.annotations.get(REGISTER, "").split(":"):
            fields = entry.split(",")
            if len(fields) == 1:
                continue
            if len(fields) < 6:
                return None
            uuid, shares, memory, kind, health, shared = fields[:6]
            listed += 1
            geometries = self.config.geometries_of(kind) if shared == MIG else ()
            mode = MIG if geometries else HAMI  # the mode of the last one listed counts for all
            if health.lower() in ("true", "t", "1"):
                number, size = read_count(shares), read_count(memory)
                cards.append(VirtualCard(uuid, number, size, kind, geometries))
        return VirtualCards(tuple(cards), mode) if 0 < listed <= MOST_CARDS else None

    def read_wish(self, pod: Pod) -> VirtualWish | None:
        """Read limits, and the annotations that narrow the choice of cards."""
        slices = tuple(_slices(pod, self.config))
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
        """Return the exclusive rules whose labels a pod has."""
        labels = pod.metadata.labels
        return frozenset(
            i
            for i, rule in enumerate(self.exclusive)
            if all(labels.get(key) == text for key, text in rule.items())
        )

    def read_grants(self, cards: VirtualCards, pod: Pod, key: str) -> Held:
        """Read the slices that were written on a pod."""
        index = {card.uuid: i for i, card in enumerate(cards.cards)}
        group = _group_of(pod)
        rules = self.rules_of(pod) if cards.mode == HAMI else frozenset()
        found = []
        for named, asked, cores in read_slices(pod.metadata.annotations.get(IDS, "")):
            i = index.get(named.partition("[")[0])
            if i is None:
                continue
            instance = read_instance(named) if cards.mode == MIG else None
            size = None if instance is None else memory_of(cards.cards[i].geometries, instance)
            memory = asked if size is None else self._in_units(size)
            found.append(
                Grant(i, key, memory, cores, 0, group, rules, instance, asked, self.family)
            )
        return tuple(found)

    def _in_units(self, memory: int) -> int:
        """Return memory of an instance in the units in which cards and pods count."""
        return memory // max(self.config.gpu_memory_factor, 1)

    def choose(self, cards: VirtualCards, wish: VirtualWish, held: Held, pod: str) -> Choice | None:
        """Assign slices to every container; a container takes no card twice."""
        if wish.mode not in (None, cards.mode):
            return None
        grants: list[Grant] = []
        score = 0.0
        for number, part in enumerate(wish.slices):
            wanted = max(part.number, 0)
            for use in self._by_policy(cards, held, grants):
                if not wanted:
                    break
                grant = self._slice_of(cards, use, wish, part)
                if grant is not None:
                    grants.append(replace(grant, pod=pod, container=number))
                    score += self._score(use, grant.memory)
                    wanted -= 1
            if wanted:
                return None
        return Choice(tuple(grants), score)

    def _slice_of(
        self, cards: VirtualCards, use: _Use, wish: VirtualWish, part: Slice
    ) -> Grant | None:
        """Take a slice of a card, in software or in hardware; None if that is not possible."""
        if use.lack(part.memory_of(use.card), part.cores) or use.unsuited(wish):
            return None
        asked = memory = part.memory_of(use.card)
        instance = None
        if cards.mode == MIG:
            found = use.instance(asked * max(self.config.gpu_memory_factor, 1))
            if found is None:
                return None
            instance, memory = found[0], self._in_units(found[1])
        rules = wish.rules if cards.mode == HAMI else frozenset()  # instances are isolated anyway
        return Grant(
            use.index, "", memory, part.cores, 0, wish.group, rules, instance, asked, self.family
        )

    def lacks(self, cards: VirtualCards, wish: VirtualWish, held: Held) -> list[Lack]:
        """Return what each card lacks for the first slices that do not fit together."""
        if wish.mode not in (None, cards.mode):
            return [Lack("", f"shares its cards by {cards.mode}, the pod wants {wish.mode}")]
        part = wish.slices[0]
        for number in range(1, len(wish.slices) + 1):
            part = wish.slices[number - 1]
            if self.choose(cards, replace(wish, slices=wish.slices[:number]), held, "") is None:
                break
        found = [self._lack(cards, use, wish, part) for use in self._by_policy(cards, held)]
        return lacks_of(found, part.number)

    def _lack(self, cards: VirtualCards, use: _Use, wish: VirtualWish, part: Slice) -> Lack | None:
        memory = part.memory_of(use.card)
        if lack := use.lack(memory, part.cores):
            return lack
        if unsuited := use.unsuited(wish):
            return Lack(use.name, unsuited)
        if self._slice_of(cards, use, wish, part) is None:
            return Lack(use.name, f"has no free instance with {memory} memory")
        return None

    def _by_policy(self, cards: VirtualCards, held: Held, own: Iterable[Grant] = ()) -> list[_Use]:
        """Order cards: fullest first, least shared first, or last listed first.

        Containers of a pod may share a card, whatever other pods must not.
        """
        uses = [_Use(i, card) for i, card in enumerate(cards.cards)]
        for grant in held:
            uses[grant.card].add(grant)
            uses[grant.card].of_others.append(grant)
        for grant in own:
            uses[grant.card].add(grant)
        if self.policy == BINPACK:
            return sorted(uses, key=lambda use: (-use.memory, use.index))
        if self.policy == SPREAD:
            return sorted(uses, key=lambda use: (use.number, use.index))
        return uses[::-1]

    def _score(self, use: _Use, memory: int) -> float:
        """Reward a card that gets full, or one that was idle."""
        if self.policy == BINPACK:
            return 100.0 * (use.memory + memory) / use.whole if use.whole else 0.0
        return 100.0 if self.policy == SPREAD and use.number == 0 else 0.0

    def annotations(
        self,
        choice: Choice,
        cards: VirtualCards,
        wish: VirtualWish,
        node: str,
        now: float,
    ) -> dict[str, str]:
        """Write the slices for the device plugin; it sets the phase when it has made them."""
        second = str(int(now))
        ids: dict[int, str] = {}
        for grant in choice.grants:
            place = "" if grant.instance is None else f"[{grant.instance}]"
            uuid = f"{cards.cards[grant.card].uuid}{place}"
            entry = f"{uuid},{VENDOR},{grant.asked},{grant.cores}:"
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


def _slices(pod: Pod, config: NvidiaConfig) -> Iterator[Slice]:
    count, size = config.resource_count_name, config.resource_memory_name
    for container in pod.spec.containers:
        limits = container.resources.limits
        if count not in limits and size not in limits:
            continue
        number = value(limits[count]) if count in limits else 1
        memory = amount_asked(container, size)
        percent = amount_asked(container, config.resource_memory_percentage_name)
        if percent is None and not memory:
            percent = 100
        cores = amount_asked(container, config.resource_core_name)
        yield Slice(number, memory or 0, percent, cores or 0)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _group_of(pod: Pod) -> str:
    group = pod.metadata.annotations.get(GROUP_NAME, "")
    return f"{pod.metadata.namespace}/{group}" if group else ""
