"""Figures of a simulation in words."""

NOTHING = "\N{EN DASH}"
"""Stands for a figure that could not be measured."""
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """Write a time in its largest unit."""
    for size, name in _UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:,.3g} {name}"
    return f"{seconds:.3g} s"
