"""Arguments of actions (the ``configurations`` of the scheduler's file), by Volcano's typing."""

from typing import TYPE_CHECKING, Any

from pumice.framework.argument_kinds import KINDS

if TYPE_CHECKING:
    from pumice.framework.session import Session


def flag(ssn: "Session", action: str, key: str, *, default: bool) -> bool:
    """Read a switch; what is no boolean leaves the default."""
    return bool(_read(ssn, action, key, bool, default))


def whole(ssn: "Session", action: str, key: str, default: int) -> int:
    """Read an integer; anything else leaves the default."""
    return int(_read(ssn, action, key, int, default))


def _read(ssn: "Session", action: str, key: str, kind: type, default: Any) -> Any:
    value = ssn.action_arguments.get(action, {}).get(key)
    if value is None:
        return default
    try:
        return KINDS[kind].read(value)
    except ValueError:
        return default
