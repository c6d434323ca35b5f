"""reclaim: not written yet."""

from pumice.framework.session import Session


def reclaim(ssn: Session) -> None:
    """Do nothing yet."""
