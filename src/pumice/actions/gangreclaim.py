"""gangreclaim: not written yet."""

from pumice.framework.session import Session


def gangreclaim(ssn: Session) -> None:
    """Do nothing yet."""
