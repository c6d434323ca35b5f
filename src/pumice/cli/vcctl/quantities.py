"""Resource amounts in the canonical spelling, with the original's messages."""

from typing import Any

from pumice.api.quantity import QuantityFormError, amount
from pumice.cli.vcctl.verbs import VerbError


def canonical(written: Any) -> str:
    """Write an amount as Kubernetes does: `1000m` is `1`, `0.5Gi` is `512Mi`.

    Raises:
        VerbError: not a quantity.
    """
    try:
        return str(amount(str(written)))
    except QuantityFormError as error:
        raise VerbError(str(error)) from None


def parse_resources(text: str) -> dict[str, str]:
    """Read `cpu=1,memory=1Gi`.

    Raises:
        VerbError: not in that syntax, or not a quantity.
    """
    amounts = {}
    for statement in text.split(",") if text else ():
        name, *values = statement.split("=")
        if len(values) != 1:
            raise VerbError(f"invalid argument syntax {statement}, expected <resource>=<value>")
        amounts[name] = canonical(values[0])
    return amounts
