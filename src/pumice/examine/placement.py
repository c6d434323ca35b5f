"""Reasons of nodes against pods that found none, and the state of the gang."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from pumice.api.codes import Cause
from pumice.api.wording import counted, verb
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.funnel import Funnel
from pumice.examine.job_outcome import JobOutcome
from pumice.examine.needed_pods import pending_rows
from pumice.examine.node_causes import RESOURCE_CLAIM, finding_of, node_findings
from pumice.examine.trial import Trial
from pumice.framework.job_records import Stage
from pumice.framework.refusals import Reason
from pumice.framework.session import Session
from pumice.framework.topology.domains import Domain

_CLAIM: Final = "PersistentVolumeClaim"
_TRIED: Final = (Stage.NODES, Stage.GANG)
"""Where a job stops that had its turn and whose queue let it look for nodes."""


def placement_findings(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Yield the reasons of network domains and nodes, and the state of the gang.

    A job that finds no nodes anywhere does not lack them because of its domains.
    """
    nodes = list(_node_reasons(ssn, trial))
    domains: list[Finding] = []
    if trial.domain is not None:
        domains = [_no_domain(ssn, job, trial), *_shut_domains(ssn, job, trial)]
    yield from [*domains, *nodes] if trial.starts_anywhere else [*nodes, *domains]


def _node_reasons(ssn: Session, trial: Trial) -> Iterator[Finding]:
    """Yield the nodes' reasons against pods that found none, and the state of the gang."""
    barred = [_barred(ssn, pod, reason) for pod, reason in trial.barred.items()]
    missing = max(trial.needed - trial.placed - trial.best_effort, 1)
    found = [each for funnel in trial.funnels for each in node_findings(funnel, missing)]
    gang = list(_gang(trial)) if trial.placed and (found or trial.barred) else []
    if found and found[0].code is Cause.INSUFFICIENT_RESOURCE and not trial.is_hopeless:
        found = [*gang, *found]
    else:
        found = [*found, *gang]
    yield from [*barred, *found] if trial.needs_barred else [*found, *barred]


def _gang(trial: Trial) -> Iterator[Finding]:
    """Yield what the gang lacks if it goes first, as in the trial."""
    first = "even if it went first" + (" and its queue had no limit" if trial.quota else "")
    found = trial.placed + trial.best_effort
    if found < trial.needed:
        numbers = {"found": found, "minMember": trial.needed}
        text = f"{_too_few(found, trial.needed)} would find a node, {first}"
        yield Finding(Cause.GANG_SHORT, text, None, numbers)
    for role, (placed, least) in trial.short_roles.items():
        role_numbers = {"role": role, "found": placed, "needed": least}
        text = f"{_role_needs(role, least)} and would find {placed or 'none'}, {first}"
        yield Finding(Cause.ROLE_SHORT, text, None, role_numbers)


def at_its_turn(finding: Finding, outcome: JobOutcome) -> Finding:
    """Return a finding about a gang with the nodes that its pods found at their turn, if any."""
    if outcome.last is None or outcome.last.stage not in _TRIED or "found" not in finding.numbers:
        return finding
    numbers = dict(finding.numbers)
    first, role = numbers["found"], numbers.get("role")
    found = outcome.found if role is None else outcome.found_by_role.get(role, 0)
    if role is None:
        who = _too_few(found, numbers["minMember"])
        now, at_turn = f"{who} {verb(found, 'finds', 'find')} a node", f"{who} found a node"
        would = f"only {first} would"
    else:
        who = _role_needs(role, numbers["needed"])
        now, at_turn = f"{who} and finds {found or 'none'}", f"{who} and found {found or 'none'}"
        would = f"it would find only {first}"
    if found >= first:
        return replace(finding, text=now, numbers={**numbers, "found": found})
    text = f"{at_turn} at its turn; even if the job went first, {would}"
    return replace(finding, text=text, numbers={**numbers, "found": found, "foundIfFirst": first})


def _too_few(found: int, needed: int) -> str:
    return f"{f'only {found}' if found else 'none'} of the {needed} pods that its gang needs"


def _role_needs(role: str, least: int) -> str:
    return f"role {role} needs nodes for {counted(least, 'pod')}"


def _barred(ssn: Session, pod: str, reason: Reason) -> Finding:
    name = pod.partition("/")[2]
    about = ObjectRef.of_key("Pod", pod)
    numbers: dict[str, Any] = {"pod": pod}
    if reason.code is Cause.VOLUME:
        about = next(_unbound(ssn, pod), about)
    elif reason.code is Cause.DEVICE:
        numbers |= ssn.refusal_numbers(ssn.task(ssn.snapshot.tasks.row_of[pod]))
        if "claim" in numbers:
            about = ObjectRef.of_key(RESOURCE_CLAIM, numbers["claim"]["claim"])
    return Finding(reason.code, f"no node can take {name}: {reason.text}", about, numbers)


def _unbound(ssn: Session, pod: str) -> Iterator[ObjectRef]:
    """Yield the claims of a pod that are missing or unbound."""
    space, _, name = pod.partition("/")
    task, claims = ssn.task(ssn.snapshot.tasks.row_of[pod]), ssn.snapshot.kind(_CLAIM)
    for volume in task.shape.spec.volumes:
        source = volume.persistent_volume_claim
        wanted = f"{name}-{volume.name}" if source is None else source.claim_name
        claim = claims.get(f"{space}/{wanted}")
        has_claim = source is not None or volume.ephemeral is not None
        if has_claim and (claim is None or claim.status.phase != "Bound"):
            yield ObjectRef(_CLAIM, wanted, space)


def _domains(ssn: Session, job: int) -> list[Domain]:
    """List the network domains in which a job may be placed."""
    limit = ssn.topology.limit(job)
    return [each for each in ssn.topology.tree.domains if limit is None or each.tier <= limit]


def _shut_domains(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Yield constraints without which one of the domains would hold the whole job."""
    funnel = Funnel(ssn, ssn.task(pending_rows(ssn, job)[0]))
    domains = _domains(ssn, job)
    for constraint, opened in funnel.but_for():
        free = funnel.fitting | opened
        if any(funnel.holds(free & each.mask) >= trial.needed for each in domains):
            yield finding_of(funnel, constraint)


def _no_domain(ssn: Session, job: int, trial: Trial) -> Finding:
    recorded = dict(trial.domain.numbers) if trial.domain is not None else {}
    numbers = {key: recorded.get(key) for key in ("limit", "large", "total")}
    limit = numbers["limit"]
    reach = "" if limit is None else f" up to tier {limit}"
    text = f"no network domain{reach} takes it"
    most = _most_room(ssn, job)
    if most is not None and most[1] < trial.needed:
        name, held = most
        numbers |= {"needed": trial.needed, "domain": name, "holds": held}
        room = f"holds only {held}" if held else "holds none"
        pods = counted(trial.needed, "pod")
        text += f": its gang needs {pods} in one, and the roomiest, {name}, {room}"
    else:
        large = int(numbers["large"] or 0)
        text += f"; {large} of {numbers['total']} {verb(large, 'looks', 'look')} large enough"
    return Finding(Cause.NETWORK_DOMAIN, text, None, numbers)


def _most_room(ssn: Session, job: int) -> tuple[str, int] | None:
    """Return the domain that takes most pods of a job, and how many; None if pods differ."""
    rows, shapes = pending_rows(ssn, job), ssn.snapshot.tasks.shape
    if len({int(shapes[row]) for row in rows}) != 1 or ssn.job(job).ready:
        return None
    funnel = Funnel(ssn, ssn.task(rows[0]))
    room = [(funnel.holds(funnel.fitting & each.mask), each.name) for each in _domains(ssn, job)]
    held, name = max(room, key=lambda one: one[0], default=(0, ""))
    return (name, held) if name else None
