"""shuffle: not written yet."""

from pumice.framework.session import Session


def shuffle(ssn: Session) -> None:
    """Do nothing yet."""
