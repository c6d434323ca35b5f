"""What must hold in every cycle: the invariants of `always`, built in and of plugins."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pumice.api.cycle_facts import Amounts, CycleFacts, EvictedPod, Invariant
from pumice.api.quantity import amount_text
from pumice.api.scenario_values import (
    Range,
    Within,
    is_count,
    is_range,
    listed,
    mapped,
    problem,
    range_from,
    refuse_unknown,
    within_from,
)
from pumice.api.wording import counted, first_of, nearest
from pumice.scenarios.compare import Difference

if TYPE_CHECKING:
    from pumice.framework.plugin import Plugin

_NAMED: Final = 3
_PREEMPTOR: Final = "preemptor"
_DUES: Final = ("deserved", "guarantee")
_SOME: Final = 1e-9
"""Amounts that differ by less are equal."""
_SELECTS: Final = ("pods", "namespace", "job", "queue", "priority", "labels")


Check = Callable[[CycleFacts], Iterable[Difference]]


def checks_of(
    path: Path, always: Mapping[str, Any], plugins: Iterable["type[Plugin]"]
) -> list[Check]:
    """Return what to ask after each cycle.

    Raises:
        ScenarioError: an invariant is not known, or its value cannot be used.
    """
    own = {name: each for kind in plugins for name, each in kind.invariants.items()}
    checks = []
    for name, value in always.items():
        where = f"always.{name}"
        if name in _BUILT_IN:
            checks.append(_BUILT_IN[name](path, where, value))
        elif name in own:
            checks.append(partial(_of_plugin, own[name], name, value))
        else:
            known = [*_BUILT_IN, *own]
            near = nearest(name, known)
            hint = f"did you mean '{near}'?" if near else "a plugin's own needs its --plugin"
            raise problem(path, "always", name, f"one of {', '.join(known)}", hint)
    return checks


def _of_plugin(
    invariant: Invariant, name: str, value: Any, cycle: CycleFacts
) -> Iterator[Difference]:
    for text in invariant(cycle, value):
        yield Difference(str(text), expected=name)


def _switched(check: Check) -> Callable[[Path, str, Any], Check]:
    """Return the reader of an invariant that is only on or off."""

    def read(path: Path, where: str, value: Any) -> Check:
        if value is not True:
            raise problem(path, where, value, "true or false")
        return check

    return read


# Gangs and nodes


def _gangs_whole(cycle: CycleFacts) -> Iterator[Difference]:
    for gang in cycle.gangs:
        if gang.is_whole:
            continue
        lost = [each.pod for each in cycle.evicted if each.job == gang.job]
        how = f"after {first_of(lost, _NAMED)} evicted" if lost else "with what was bound"
        text = (
            f"{gang.job}: {gang.holding} of at least {gang.needed} pods have a node {how}, "
            "expected all that it needs or none"
        )
        yield Difference(text, about=(gang.job, *lost), expected=f"{gang.needed} pods or none")


def _no_node_overcommitted(cycle: CycleFacts) -> Iterator[Difference]:
    for node in cycle.nodes:
        for amounts, when in ((node.used, ""), (node.later, " once promised pods have started")):
            over = _beyond(amounts, node.allocatable)
            if over:
                text = f"node {node.node}: {'; '.join(over)}{when}"
                placed = {**cycle.decisions.pipelined, **cycle.decisions.binds}
                pods = tuple(pod for pod, where in placed.items() if where == node.node)
                yield Difference(text, about=pods, expected="no more than is allocatable")
                break


def _beyond(amounts: Amounts, limits: Amounts) -> list[str]:
    return [
        f"{_text(name, amount)} of {name} in use, {_text(name, limits.get(name, 0))} allocatable"
        for name, amount in amounts.items()
        if amount > limits.get(name, 0) + _SOME and (name != "pods" or limits.get(name))
    ]


def _text(resource: str, amount: float) -> str:
    is_plain = resource in ("memory", "pods")
    return amount_text(resource, amount if is_plain else amount * 1000)


# Evictions


def _never_evicted(path: Path, where: str, value: Any) -> Check:
    items = value if isinstance(value, list) else [value]
    tests = [
        _selector(path, f"{where}[{i}]" if isinstance(value, list) else where, item)
        for i, item in enumerate(items)
    ]
    if not tests:
        raise problem(path, where, value, "pods, such as kube-system/*")

    def check(cycle: CycleFacts) -> Iterator[Difference]:
        for pod in cycle.evicted:
            words = next((words for words, has in tests if has(pod)), None)
            if words is not None:
                text = f"{pod.pod}: evicted, expected never to be ({words})"
                yield Difference(text, about=(pod.pod,), expected="not evicted")

    return check


_Selects = Callable[[EvictedPod], bool]


def _selector(path: Path, where: str, item: Any) -> tuple[str, _Selects]:
    """Read which pods are meant; of several keys all must hold."""
    if isinstance(item, str):
        key, equals, pattern = item.partition("=")
        if equals and key in ("queue", "priority", "namespace", "job"):
            return item, _test(path, where, key, pattern)
        return item, _test(path, where, "pods", item)
    given = mapped(path, where, item, "the name of pods, or a mapping with queue or labels")
    refuse_unknown(path, where, given, _SELECTS)
    if not given:
        raise problem(path, where, given, f"one of the keys {', '.join(_SELECTS)}")
    tests = [_test(path, f"{where}.{key}", key, value) for key, value in given.items()]
    words = ", ".join(f"{key} {value}" for key, value in given.items())
    return words, lambda pod: all(test(pod) for test in tests)


def _test(path: Path, where: str, key: str, value: Any) -> _Selects:
    if key == "labels":
        labels = mapped(path, where, value, "labels to values")
        wanted = {str(name): str(text) for name, text in labels.items()}
        return lambda pod: all(
            name in pod.labels and fnmatchcase(pod.labels[name], text)
            for name, text in wanted.items()
        )
    if key == "priority" and is_range(value):
        numbers = range_from(path, where, value)
        return lambda pod: pod.priority in numbers
    patterns = [str(one) for one in (value if isinstance(value, list) else [value])]
    of: dict[str, Callable[[EvictedPod], tuple[str, ...]]] = {
        "pods": lambda pod: (pod.pod, pod.job),
        "namespace": lambda pod: (pod.pod.partition("/")[0],),
        "job": lambda pod: (pod.job,),
        "queue": lambda pod: (pod.queue,),
        "priority": lambda pod: (pod.priority_class,),
    }
    return lambda pod: any(
        fnmatchcase(name, pattern) for name in of[key](pod) for pattern in patterns
    )


def _evicted_priority_below(path: Path, where: str, value: Any) -> Check:
    if value != _PREEMPTOR and not is_count(value):
        raise problem(path, where, value, f"{_PREEMPTOR}, or a number")

    def check(cycle: CycleFacts) -> Iterator[Difference]:
        for pod in cycle.evicted:
            limit = pod.whose_priority if value == _PREEMPTOR else int(value)
            if limit is not None and pod.priority >= limit:
                whom = f" of {pod.whom}" if value == _PREEMPTOR else ""
                text = (
                    f"{pod.pod}: evicted with priority {pod.priority}, "
                    f"expected one below {limit}{whom}"
                )
                yield Difference(text, about=(pod.pod,), expected=f"priority below {limit}")

    return check


def _queue_not_below(path: Path, where: str, value: Any) -> Check:
    dues = [value] if isinstance(value, str) else listed(path, where, value)
    for due in dues:
        if due not in _DUES:
            raise problem(path, where, due, " or ".join(_DUES))
    return partial(_below_due, dues)


def _below_due(dues: list[str], cycle: CycleFacts) -> Iterator[Difference]:
    for queue in cycle.queues:
        for due in dues:
            amounts: Amounts = getattr(queue, due)
            short = [
                f"{_text(name, queue.held.get(name, 0))} of {name}, {due} {_text(name, amount)}"
                for name, amount in amounts.items()
                if queue.held.get(name, 0) < amount - _SOME
            ]
            if short:
                pods = first_of(list(queue.pods), _NAMED)
                text = f"queue {queue.queue}: holds {'; '.join(short)} after {pods} evicted"
                yield Difference(text, about=tuple(queue.pods), expected=f"no less than its {due}")


def _evictions(path: Path, where: str, value: Any) -> Check:
    wanted = range_from(path, where, value)

    def check(cycle: CycleFacts) -> Iterator[Difference]:
        so_far = cycle.evicted_before + len(cycle.evicted)
        if cycle.evicted and wanted.most is not None and so_far > wanted.most:
            pods = tuple(each.pod for each in cycle.evicted)
            most = Range(most=wanted.most)
            text = (
                f"{counted(so_far, 'eviction')} ({first_of(list(pods), _NAMED)}), expected {most}"
            )
            yield Difference(text, about=pods, expected=str(most))

    return check


def _settles(path: Path, where: str, value: Any) -> Check:
    given = value
    if isinstance(value, dict):
        refuse_unknown(path, where, value, ("within",))
        given = value.get("within")
    within = within_from(path, f"{where}.within" if given is not value else where, given)
    return partial(_not_settled, within)


def _not_settled(within: Within, cycle: CycleFacts) -> Iterator[Difference]:
    is_over = within.is_over(cycle.since_change, cycle.seconds_since_change)
    if cycle.is_quiet or not is_over:
        return
    pods = (*cycle.decisions.binds, *(each.pod for each in cycle.evicted))
    done = [
        f"{counted(len(some), 'pod')} {verb}"
        for some, verb in ((cycle.decisions.binds, "bound"), (cycle.evicted, "evicted"))
        if some
    ]
    words = " and ".join(done) or "phases of pod groups change"
    text = f"not settled: {words} in cycle {cycle.number}, expected nothing after {within}"
    yield Difference(text, about=pods, expected=f"settled within {within}")


_BUILT_IN: Final[Mapping[str, Callable[[Path, str, Any], Check]]] = {
    "gangsWhole": _switched(_gangs_whole),
    "neverEvicted": _never_evicted,
    "evictedPriorityBelow": _evicted_priority_below,
    "queueNotBelow": _queue_not_below,
    "noNodeOvercommitted": _switched(_no_node_overcommitted),
    "evictions": _evictions,
    "settles": _settles,
}
INVARIANTS: Final = tuple(_BUILT_IN)
