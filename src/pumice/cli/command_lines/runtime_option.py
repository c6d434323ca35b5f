"""Options that are durations: ``--default-runtime`` of pods, and ``--within`` for answers."""

import click


def _seconds(_ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
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
        error.field = param.opts[0]
        raise
    if seconds < 0:
        raise InputError(wanted="0 or more", found=text, field=param.opts[0])
    return seconds


runtime_option = click.option(
    "--default-runtime",
    metavar="DURATION",
    callback=_seconds,
    help="Run time of pods that state none, such as 90m, for the forecast.  [default: for ever]",
)
within_option = click.option(
    "--within",
    metavar="DURATION",
    callback=_seconds,
    help="Answer within this time, such as 5s, with what is known by then.  [default: no limit]",
)
