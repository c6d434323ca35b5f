"""gangpreempt: not written yet."""

from pumice.framework.session import Session


def gangpreempt(ssn: Session) -> None:
    """Do nothing yet."""
