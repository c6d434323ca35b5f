"""A configuration together with the queues, priorities and nodes that it is for.

A configuration that reads well by itself may still evict the wrong pods, or none at all, in the
cluster where it is used.  Each finding has the smallest change that helps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pumice.api.conf import PluginConf, Problem, SchedulerConf
from pumice.api.kinds import SYSTEM_PRIORITIES
from pumice.api.quantity import amount_text
from pumice.api.wording import counted, first_of, listing
from pumice.diagnosis.cluster_state import ClusterState
from pumice.framework.conf_check import EVICTING_HOOKS
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import HOOKS, Plugin, implements
from pumice.framework.registry import build_tiers
from pumice.webhooks.fields import Shown
from pumice.webhooks.files import Files
from pumice.webhooks.queue import Bundle, bundle, check_children

_ROOT: Final = ("", "root")
_SHOWN: Final = 3
_RECLAIMING: Final = frozenset({"reclaim", "gangreclaim"})
_PREEMPTING: Final = frozenset({"preempt", "gangpreempt"})


def check_in_cluster(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]], world: ClusterState
) -> list[Problem]:
    """List what a configuration without errors probably does not mean in a cluster, by line."""
    view = _View(conf, plugins, world)
    of_plugins = (_actions, _victims, _priorities, _reclaim, _predicates, _weights)
    of_queues = (_tree, _deserved, _shares, _guarantees)
    found = (problem for part in (*of_plugins, *of_queues) for problem in part(view))
    return sorted(found, key=lambda problem: (not problem.line, problem.line))


@dataclass(frozen=True)
class _View:
    """A configuration in a cluster."""

    conf: SchedulerConf
    plugins: Mapping[str, type[Plugin]]
    world: ClusterState

    @cached_property
    def entries(self) -> list[tuple[PluginConf, Enabled]]:
        """The plugins of all tiers, as written and as made."""
        tiers, _ = build_tiers(self.conf, self.plugins)
        written = [entry for tier in self.conf.tiers for entry in tier.plugins]
        made = [enabled for tier in tiers for enabled in tier]
        return list(zip(written, made, strict=True))

    @cached_property
    def evicting(self) -> list[str]:
        """The actions that take the room of others."""
        return [action for action in self.conf.actions if action in EVICTING_HOOKS]

    @cached_property
    def limiting(self) -> list[tuple[PluginConf, Enabled]]:
        """The plugins that limit queues."""
        return [each for each in self.entries if implements(type(each[1].plugin), "queue_limits")]

    @cached_property
    def queues(self) -> dict[str, Mapping[str, Any]]:
        """The specifications of queues by name."""
        return {name: one.get("spec") or {} for name, one in self.world.of_kind("Queue").items()}

    @cached_property
    def total(self) -> Bundle:
        """What all nodes offer."""
        total: Bundle = {}
        for node in self.world.of_kind("Node").values():
            for name, amount in _counted((node.get("status") or {}).get("allocatable")).items():
                total[name] = total.get(name, 0.0) + amount
        return total

    @cached_property
    def is_tree(self) -> bool:
        """Whether a plugin reads the parents of queues."""
        return any(getattr(made.plugin, "hierarchy", False) for _, made in self.limiting)

    def is_first(self, queue: str) -> bool:
        """Return whether a queue is directly below the root."""
        return queue != "root" and str(self.queues[queue].get("parent") or "") in _ROOT

    def named(self, name: str) -> tuple[PluginConf, Enabled] | None:
        """Return a plugin of the configuration by name."""
        return next((each for each in self.entries if each[0].name == name), None)

    def judging(self, action: str) -> list[PluginConf]:
        """Return the plugins that name victims for an action."""
        hook = EVICTING_HOOKS[action]
        return [entry for entry, made in self.entries if made.offers(hook)]

    def with_actions(self, actions: Iterable[str]) -> str:
        """Return the line with which actions are written."""
        return f'write actions: "{", ".join(actions)}"'

    def odd(self, says: str, hint: str, at: PluginConf | str) -> Problem:
        """Make a problem at a plugin or at a place: what follows from it, and what helps."""
        if isinstance(at, PluginConf):
            line, place = at.line, at.path
        else:
            line, place = (self.conf.actions_line if at == "actions" else 0), at
        return Problem(line=line, field=place, says=says, hint=hint, severity="odd")


# Actions


def _actions(view: _View) -> Iterator[Problem]:
    """Find actions that are missing, or in an order in which promises are lost."""
    actions = list(view.conf.actions)
    if "allocate" not in actions:
        first = actions.index("enqueue") + 1 if "enqueue" in actions else 0
        hint = view.with_actions([*actions[:first], "allocate", *actions[first:]])
        yield view.odd("no pod is bound: the action allocate is missing", hint, "actions")
        return
    if view.named("overcommit") and "enqueue" not in actions:
        hint = view.with_actions(["enqueue", *actions])
        says = "jobs are admitted without limit: overcommit is asked by enqueue, which is missing"
        yield view.odd(says, hint, "actions")
    yield from _overcommit(view)
    early = [each for each in actions[: actions.index("allocate")] if each in EVICTING_HOOKS]
    if early:
        rest = [each for each in actions if each not in early]
        at = rest.index("allocate") + 1
        hint = view.with_actions([*rest[:at], *early, *rest[at:]])
        says = (
            f"promises are lost: room of {listing(early, _SHOWN)} before allocate is promised "
            "again in each cycle, and no pod is bound to it"
        )
        yield view.odd(says, hint, "actions")
    if "enqueue" in actions and actions.index("enqueue") > actions.index("allocate"):
        rest = ["enqueue", *(each for each in actions if each != "enqueue")]
        says = "jobs are admitted after others have taken the room: enqueue is after allocate"
        yield view.odd(says, view.with_actions(rest), "actions")


def _overcommit(view: _View) -> Iterator[Problem]:
    """Find overcommit in a tier after one that admits jobs without asking it."""
    overcommit = view.named("overcommit")
    if overcommit is None or "enqueue" not in view.conf.actions:
        return
    for number, tier in enumerate(view.conf.tiers, start=1):
        if overcommit[0] in tier.plugins:
            return
        for entry, made in view.limiting:
            if entry in tier.plugins and made.offers("job_enqueueable"):
                says = (
                    f"overcommit has no effect: {entry.name} in tier {number} admits jobs, and a "
                    "later tier is not asked"
                )
                hint = (
                    f"leave it out, or move it to tier {number} if a full cluster should admit few"
                )
                yield view.odd(says, hint, overcommit[0])
                return


# Victims


def _victims(view: _View) -> Iterator[Problem]:
    """Find critical pods and gangs that no plugin protects."""
    guard = view.named("conformance")
    bare = [
        action
        for action in view.evicting
        if guard is None or not guard[1].offers(EVICTING_HOOKS[action])
    ]
    if bare:
        asked = view.judging(bare[0])
        where = f"the tier of {asked[0].name}" if asked else "the first tier"
        hint = f"write - name: conformance in {where}, and victims: strict beside its plugins"
        missing = "without conformance"
        if guard is not None:
            hint = f"leave out {_switches(bare)} of conformance"
            missing = "conformance is switched off there"
        says = (
            "critical pods (kube-system, system-node-critical) may be evicted by "
            f"{listing(bare, _SHOWN)}: {missing}"
        )
        yield view.odd(says, hint, guard[0] if guard else "tiers")
    gang = view.named("gang")
    off = [
        action
        for action in view.evicting
        if gang is not None
        and action in gang[1].plugin.protects_in
        and not gang[1].offers(EVICTING_HOOKS[action])
    ]
    if gang is not None and off:
        hint = f"leave out {_switches(off)}, or evict whole gangs: gangpreempt, gangreclaim"
        says = f"running gangs may be broken by {listing(off, _SHOWN)}: gang is switched off there"
        yield view.odd(says, hint, gang[0])


def _switches(actions: Iterable[str]) -> str:
    """Write the switches that turn off who judges the victims of actions."""
    keys = dict.fromkeys(HOOKS[EVICTING_HOOKS[action]].switch for action in actions)
    return " and ".join(f"{key}: false" for key in keys if key)


# Preempt


def _priorities(view: _View) -> Iterator[Problem]:
    """Find jobs that preempt without a priority."""
    actions = [action for action in view.conf.actions if action in _PREEMPTING]
    if not actions:
        return
    priority = view.named("priority")
    if priority is None or not priority[1].offers(EVICTING_HOOKS[actions[0]]):
        asked = view.judging(actions[0])
        where = f"before {asked[0].name}" if asked else "in the first tier"
        hint = f"write - name: priority {where}"
        if priority is not None:
            hint = f"leave out {_switches(actions)} of priority"
        says = f"pods of any priority may be evicted by {listing(actions, _SHOWN)}: " + (
            "priority is switched off there" if priority else "without the plugin priority"
        )
        yield view.odd(says, hint, priority[0] if priority else "tiers")
        return
    classes = view.world.of_kind("PriorityClass")
    own = [name for name in classes if name not in SYSTEM_PRIORITIES]
    if not own:
        hint = "create a PriorityClass for urgent jobs, or leave out the action"
        says = f"{listing(actions, _SHOWN)} evicts no pod: without priority classes all are equal"
        yield view.odd(says, hint, "actions")


# Reclaim


def _reclaim(view: _View) -> Iterator[Problem]:
    """Find why reclaim cannot take anything, or takes it from everybody."""
    actions = [action for action in view.conf.actions if action in _RECLAIMING]
    if not actions:
        return
    if not view.limiting:
        hint = "write - name: capacity (stated amounts) or - name: proportion (by weight)"
        says = f"any queue takes pods of any other by {actions[0]}: no plugin limits queues"
        yield view.odd(says, hint, "tiers")
    for entry, made in view.limiting:
        hooks = (EVICTING_HOOKS[actions[0]], "preemptive")
        judged = [hook for hook in hooks if implements(type(made.plugin), hook)]
        off = [HOOKS[hook].switch for hook in judged if not made.offers(hook)]
        if off:
            hint = f"leave out {' and '.join(f'{key}: false' for key in off if key)}"
            says = f"what queues deserve does not count in {actions[0]}: {entry.name} is off there"
            yield view.odd(says, hint, entry)
    queues = {name for name in view.queues if name not in _ROOT}
    open_to = [name for name in queues if view.queues[name].get("reclaimable") is not False]
    if not open_to:
        name = min(queues, default="default")
        found = "no queue is reclaimable" if queues else "there is no queue"
        hint = f"set spec.reclaimable: true of a queue, as in --set queue/{name}.reclaimable=true"
        yield view.odd(f"{actions[0]} takes nothing: {found}", hint, "actions")


# Nodes


def _predicates(view: _View) -> Iterator[Problem]:
    """Find that nothing keeps pods from nodes that do not suit them."""
    predicates = view.named("predicates")
    if predicates is not None and predicates[1].offers("filter_nodes"):
        return
    missing, hint = "without predicates", "write - name: predicates in the last tier"
    if predicates is not None:
        missing = "predicates is switched off"
        hint = f"leave out {HOOKS['filter_nodes'].switch}: false of predicates"
    says = f"pods go to nodes with taints, other labels and no free ports: {missing}"
    yield view.odd(says, hint, predicates[0] if predicates else "tiers")


def _weights(view: _View) -> Iterator[Problem]:
    """Find weights below zero, and weights of resources that do not count."""
    for entry, _ in view.entries:
        for key, value in entry.arguments.items():
            at = PluginConf(entry.name, {}, {}, entry.argument_lines.get(key, 0), path=key)
            if isinstance(value, int | float) and "weight" in key.lower() and value < 0:
                hint = "write 0 to switch it off, or a larger number"
                yield view.odd(f"a weight below 0 turns the order around: {value}", hint, at)
            stem, mark, resource = key.partition(".resources.")
            listed = _listed(entry.arguments.get(f"{stem}.resources"))
            if mark and resource not in listed:
                names = ", ".join([*listed, resource])
                hint = f"write {stem}.resources: {names}"
                says = f"the weight of {resource} does not count: it is not in {stem}.resources"
                yield view.odd(says, hint, at)
            if key.endswith(".resources") and view.total:
                lost = [name for name in _listed(value) if name not in view.total]
                if lost:
                    hint = "correct the name, or leave it out"
                    yield view.odd(f"no node has {first_of(lost, _SHOWN)}", hint, at)


def _listed(value: object) -> list[str]:
    return [name.strip() for name in str(value or "").split(",") if name.strip()]


# Queues


def _parents_of(names: Sequence[str]) -> str:
    return f"parents of {first_of(names, _SHOWN)}" if len(names) > 1 else f"parent of {names[0]}"


def _tree(view: _View) -> Iterator[Problem]:
    """Find amounts that do not add up along the tree, and a tree that nobody reads."""
    parents = {name: str(spec.get("parent") or "") for name, spec in view.queues.items()}
    placed = sorted(name for name, parent in parents.items() if parent not in _ROOT)
    stating = [each for each in view.limiting if each[0].name == "capacity"]
    if placed and not any(made.plugin.hierarchy for _, made in stating):
        hint = "write enableHierarchy: true beside - name: capacity"
        says = f"the tree of queues does not count: no plugin reads the {_parents_of(placed)}"
        yield view.odd(says, hint, stating[0][0] if stating else "tiers")
    if not stating:
        return
    queues = Files(view.world.of_kind("Queue").values())
    for queue in queues.queues():
        for finding in check_children(queue, queues):
            path = ".".join(str(step) for step in finding.path[1:])
            name = queue["metadata"]["name"]
            hint = "raise it to that, or lower those of the queues below"
            shown = finding.found
            found = shown.text if isinstance(shown, Shown) else str(shown)
            says = f"the queues below may get less than they state: {found}, not {finding.wanted}"
            yield view.odd(says, hint, f"queue/{name}.{path}")


def _deserved(view: _View) -> Iterator[Problem]:
    """Find amounts that only capacity reads, beside proportion."""
    stating = sorted(name for name, spec in view.queues.items() if spec.get("deserved"))
    proportion = view.named("proportion")
    if stating and proportion and not view.named("capacity"):
        says = f"deserved of {first_of(stating, _SHOWN)} does not count: proportion reads weights"
        yield view.odd(says, "write - name: capacity in its place", proportion[0])


def _shares(view: _View) -> Iterator[Problem]:
    """Find shares that the cluster does not have, and weights that are none."""
    if not view.limiting or not view.total:
        return
    kinds: dict[str, Any] = {"guarantee": _guaranteed}
    if any(entry.name == "capacity" for entry, _ in view.limiting):
        kinds["deserved"] = lambda spec: spec.get("deserved")
    for kind, read in kinds.items():
        for resource, holders in _by_resource(view, read).items():
            total, stated = view.total.get(resource, 0.0), sum(holders.values())
            if stated > total:
                yield _beyond(view, kind, resource, holders, total)
    for name, spec in view.queues.items():
        weight = spec.get("weight")
        if isinstance(weight, int | float) and weight < 0:
            hint = f"set it, as in --set queue/{name}.weight=1"
            says = f"queue {name} gets no share: its weight is {weight}"
            yield view.odd(says, hint, f"queue/{name}.weight")


def _guarantees(view: _View) -> Iterator[Problem]:
    """Find queues of a tree that may hold what is guaranteed to others.

    What is guaranteed is taken off what the root may hold, and that has no end unless it is stated.
    Admission refuses a change of the root; the same limits can be stated by the queues below it.
    """
    if not view.is_tree or not view.total:
        return
    capped = _counted((view.queues.get("root") or {}).get("capability"))
    first = {name: spec for name, spec in view.queues.items() if view.is_first(name)}
    parents = {str(spec.get("parent") or "") for spec in view.queues.values()}
    for resource, holders in _by_resource(view, _guaranteed).items():
        known, total = sum(holders.values()), view.total.get(resource, 0.0)
        free = [
            name
            for name, spec in first.items()
            if not _counted(spec.get("capability")).get(resource)
            and (name in parents or known > holders.get(name, 0.0))
        ]
        if not capped.get(resource) and free and known <= total:
            most = total - known + holders.get(free[0], 0.0)
            says = (
                f"guarantees are not kept free: root has no capability, so "
                f"{first_of(free, _SHOWN)} may hold all {resource}"
            )
            hint = f"--set queue/{free[0]}.capability.{resource}={amount_text(resource, most)}"
            more = "; the others in the same way, all nodes without what is guaranteed to others"
            hint += more if len(free) > 1 else ""
            yield view.odd(says, hint, f"queue/{free[0]}.capability.{resource}")


def _guaranteed(spec: Mapping[str, Any]) -> Any:
    return (spec.get("guarantee") or {}).get("resource")


def _by_resource(view: _View, read: Any) -> dict[str, dict[str, float]]:
    """Return what the queues directly below the root state, by resource."""
    found: dict[str, dict[str, float]] = {}
    for name, spec in view.queues.items():
        if name == "root" or (view.is_tree and not view.is_first(name)):
            continue
        for resource, amount in _counted(read(spec)).items():
            found.setdefault(resource, {})[name] = amount
    return found


def _counted(given: Mapping[str, Any] | None) -> Bundle:
    """Count the amounts of a manifest, in which they may be numbers as well as texts."""
    return bundle({name: str(amount) for name, amount in (given or {}).items()})


def _beyond(
    view: _View, kind: str, resource: str, holders: Mapping[str, float], total: float
) -> Problem:
    """Describe shares that are larger than the cluster; the largest one can give most."""
    stated, largest = sum(holders.values()), max(holders, key=lambda name: holders[name])
    enough = holders[largest] - (stated - total)
    is_guarantee = kind == "guarantee"
    field, words = (f"{kind}.resource", "guaranteed") if is_guarantee else (kind, "due")
    who = counted(len(holders), "queue") if len(holders) > 1 else f"queue {largest}"
    hint = f"lower them by {amount_text(resource, stated - total)}"
    if enough >= 0:
        hint = f"--set queue/{largest}.{kind}.{resource}={amount_text(resource, enough)}"
    says = (
        f"not all of it can be given: {amount_text(resource, stated)} {resource} {words} to {who}, "
        f"and the nodes have {amount_text(resource, total)}"
    )
    return view.odd(says, hint, f"queue/{largest}.{field}.{resource}")
