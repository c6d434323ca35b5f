"""The option ``--default-runtime``: how long pods run that do not say so, in seconds."""

import click

_OPTION = "--default-runtime"


def _seconds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """Read the duration.

    Raises:
        InputError: not a duration, or less than nothing.
    """
    if text is None:
        return None
    from pumice.api.duration import parse_duration
    from pumice.errors import InputError

    try:
        seconds = parse_duration(text)
    except InputError as error:
        error.field = _OPTION
        raise
    if seconds < 0:
        raise InputError(wanted="0 or more", found=text, field=_OPTION)
    return seconds


runtime_option = click.option(
    _OPTION,
    metavar="DURATION",
    callback=_seconds,
    help="Run time of pods that state none, such as 90m, for the forecast.  [default: for ever]",
)
