"""The nodes in a HyperNode, and the named members that do not exist.

The scheduler finds them in the same way: members of a HyperNode must be of a lower tier.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pumice.api.kinds import Manifest
from pumice.api.nodes import HyperNode, MemberSelector
from pumice.api.objects import from_manifest
from pumice.api.patterns import occurrences
from pumice.core.labels import selects
from pumice.errors import InputError


class Members(msgspec.Struct):
    """The nodes of one HyperNode, by name."""

    tier: int
    nodes: set[str] = msgspec.field(default_factory=set)
    missing: list[str] = msgspec.field(default_factory=list)
    """Named members that do not exist, as "Node n"."""


def resolve_members(
    hyper_nodes: Iterable[Manifest], nodes: Sequence[Manifest]
) -> dict[str, Members]:
    """Find the nodes of all HyperNodes; one that cannot be read is left out."""
    labels = {str(each["metadata"]["name"]): each["metadata"].get("labels") or {} for each in nodes}
    read = sorted(_readable(hyper_nodes), key=lambda each: (each.spec.tier, each.metadata.name))
    selectors = [one.selector for each in read for one in each.spec.members]
    patterns = {one.regex_match.pattern for one in selectors if one.regex_match is not None}
    names = [*labels]
    matching = {
        pattern: {names[index] for index in found}
        for pattern, found in occurrences(patterns, names).items()
    }
    found: dict[str, Members] = {}
    for each in read:
        members = Members(each.spec.tier)
        for one in each.spec.members:
            exact = one.selector.exact_match
            if one.type == "Node":
                members.nodes |= _nodes(one.selector, labels, matching)
                if exact is not None and exact.name not in labels:
                    members.missing.append(f"Node {exact.name}")
            elif exact is not None:
                child = found.get(exact.name)
                if child is None or child.tier >= members.tier:
                    members.missing.append(f"HyperNode {exact.name}")
                else:
                    members.nodes |= child.nodes
        found[each.metadata.name] = members
    return found


def _readable(manifests: Iterable[Manifest]) -> Iterable[HyperNode]:
    for manifest in manifests:
        try:
            read = from_manifest(manifest)
        except InputError:
            continue
        if isinstance(read, HyperNode):
            yield read


def _nodes(
    selector: MemberSelector,
    labels: Mapping[str, Mapping[str, str]],
    matching: Mapping[str, set[str]],
) -> set[str]:
    """Find nodes; a label selector that asks for nothing selects nothing."""
    found: set[str] = set()
    if selector.exact_match is not None and selector.exact_match.name in labels:
        found.add(selector.exact_match.name)
    if selector.regex_match is not None:
        found |= matching[selector.regex_match.pattern]
    wanted = selector.label_match
    if wanted is not None and (wanted.match_labels or wanted.match_expressions):
        found |= {name for name, marks in labels.items() if selects(wanted, marks)}
    return found
