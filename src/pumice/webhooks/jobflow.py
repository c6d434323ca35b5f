"""JobFlows: dependencies must exist and be acyclic."""

from typing import Final

from pumice.webhooks.review import Answer, Existing, Finding, Options, Request, denied
from pumice.webhooks.types.decoding import decode

KIND: Final = "flow.JobFlow"
_NO_DAG: Final = "jobflow Flow is not DAG"
_PATH: Final = ("spec", "flows")


def validate_jobflow(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new or a changed flow of jobs."""
    del existing, options
    flow = decode(request.object, KIND)
    if request.operation not in ("CREATE", "UPDATE"):
        return denied([Finding("expect operation to be 'CREATE' or 'UPDATE'")])
    targets = {
        one["name"]: list((one.get("dependsOn") or {}).get("targets") or ())
        for one in flow["spec"].get("flows") or ()
    }
    for index, (name, names) in enumerate(targets.items()):
        unknown = next((one for one in names if one not in targets), None)
        if unknown is not None:
            text = f"{_NO_DAG}: vertex is not defined: {unknown}"
            path = (*_PATH, index, "dependsOn", "targets")
            return denied([Finding(text, path, unknown, f"flows of this object (in {name})")])
    if _has_cycle(targets):
        return denied([Finding(_NO_DAG, _PATH, wanted="flows that wait for earlier ones")])
    return Answer()


def _has_cycle(targets: dict[str, list[str]]) -> bool:
    """Return whether the dependencies have a cycle; a target may occur twice."""
    waiting = {name: len(names) for name, names in targets.items()}
    waiters: dict[str, list[str]] = {name: [] for name in targets}
    for name, names in targets.items():
        for target in names:
            waiters[target].append(name)
    ready = [name for name, number in waiting.items() if not number]
    done = 0
    while ready:
        done += 1
        for name in waiters[ready.pop()]:
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    return done < len(targets)
