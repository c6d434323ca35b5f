"""backfill: not written yet."""

from pumice.framework.session import Session


def backfill(ssn: Session) -> None:
    """Do nothing yet."""
