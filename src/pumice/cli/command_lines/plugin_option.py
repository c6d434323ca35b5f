"""The option ``--plugin``: plugins of the user's own, named where a command runs a policy.

A command receives texts and passes them along; the code that makes a scheduler, here or in another
process, loads the classes with ``load_plugins``.
"""

import click

PluginSources = tuple[str, ...]
"""The value of the option: files with absolute paths, or modules."""


def _check(_ctx: click.Context, _param: click.Parameter, sources: PluginSources) -> PluginSources:
    """Load the plugins, so that a mistake is reported before anything runs.

    Raises:
        InputError: a text names no plugin, or one with a built-in name.
    """
    if not sources:
        return ()
    from pumice.errors import InputError
    from pumice.framework.registry import load_plugins, whole_source
    from pumice.plugins import builtin_plugins

    builtin = builtin_plugins()
    load_plugins(sources)
    for source in sources:
        for name in load_plugins([source]):
            if name in builtin:
                raise InputError(
                    wanted="a name that no built-in plugin has", found=name, file=source
                )
    return tuple(whole_source(source) for source in sources)


plugin_option = click.option(
    "--plugin",
    "plugins",
    metavar="FILE.py|MODULE[:CLASS]",
    multiple=True,
    callback=_check,
    help="A plugin of your own that the configuration may name; may be given several times. "
    "It is code that runs with your rights: name only files that you trust.",
)
