"""preempt: not written yet."""

from pumice.framework.session import Session


def preempt(ssn: Session) -> None:
    """Do nothing yet."""
