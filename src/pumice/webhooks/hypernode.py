"""HyperNodes: members, and the expressions that choose them."""

from collections.abc import Iterator
from typing import Any, Final

from pumice.api.patterns import PatternError, check_pattern
from pumice.webhooks.fields import FieldError, aggregate
from pumice.webhooks.review import Answer, Existing, Options, Request, denied, of_field
from pumice.webhooks.types.decoding import decode

KIND: Final = "topology.HyperNode"
_MEMBERS: Final = "[].spec.members"


def validate_hypernode(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new or a changed HyperNode."""
    del existing, options
    node = decode(request.object, KIND)
    if request.operation not in ("CREATE", "UPDATE"):
        return Answer()
    errors = list(_check(node["spec"].get("members") or []))
    if not errors:
        return Answer()
    return denied((of_field(error) for error in errors), aggregate(errors))


def _check(members: list[dict[str, Any]]) -> Iterator[FieldError]:
    if not members:
        text = "member must have at least one member"
        yield FieldError("Invalid value", ("spec", "members"), None, text, _MEMBERS)
    for index, member in enumerate(members):
        pattern = (member["selector"].get("regexMatch") or {}).get("pattern", "")
        try:
            check_pattern(pattern)
        except PatternError as error:
            text = f"member regexMatch pattern is invalid: {error}"
            path = ("spec", "members", index, "selector", "regexMatch", "pattern")
            shown = f"{_MEMBERS}.selector.regexMatch.pattern"
            yield FieldError("Invalid value", path, pattern, text, shown)
