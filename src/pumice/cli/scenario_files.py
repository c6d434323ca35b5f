"""Files and standard input as one scenario; what they hold may be plain manifests.

Used by `pumice run` and `pumice test`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pumice.api.manifests import Pack, load_roots, load_values
from pumice.api.named_files import read_conf_file
from pumice.api.text_files import shown_name
from pumice.cli.option_errors import time_of
from pumice.cli.terminal import echo
from pumice.errors import InputError, ScenarioError, Words
from pumice.garbage_collection import reading
from pumice.scenarios.scenario import Scenario, are_manifests, expectations_from, located_scenario


def read_scenario(
    files: Sequence[Path], conf: Path | None = None, now: str | None = None
) -> Scenario:
    """Make one scenario of files; for plain manifests, print which configuration applies.

    Raises:
        InputError: a file cannot be read or used.
    """
    with reading():
        return _read(files, conf, time_of(now))


def _read(files: Sequence[Path], conf: Path | None, at: float | None) -> Scenario:
    if len(files) > 1 or files[0].is_dir():
        return _of_manifests(files, None, conf, at)
    roots = load_roots(files[0])
    values = [root.content for root in roots]
    if are_manifests(values):
        return _of_manifests(files, [root.pack() for root in roots], conf, at)
    scenario = located_scenario(_only(values), Path(shown_name(files[0])))
    if conf is not None:
        text, source = read_conf_file(conf)
        scenario = replace(scenario, conf=text, conf_source=source)
    return scenario if at is None else replace(scenario, now=at)


def with_expectations(scenario: Scenario, file: Path) -> Scenario:
    """Return a scenario with the expectations of a file, which `pumice run -o yaml` can print.

    Raises:
        ScenarioError: the file holds something else.
    """
    cycles, expect = expectations_from(file, {"expect": _only(load_values(file))})
    if not expect:
        raise ScenarioError(wanted="expectations", field="expect", file=str(file))
    return replace(scenario, cycles=cycles, expect=expect)


def hold_manifests(source: Path) -> bool:
    """Return whether a file holds manifests rather than a scenario."""
    return source.is_dir() or are_manifests(load_values(source))


def _of_manifests(
    files: Sequence[Path], packs: Sequence[Pack] | None, conf: Path | None, now: float | None
) -> Scenario:
    """Make a scenario of manifests; ``packs`` are those of the one file if it was read already."""
    from pumice.diagnosis.sources import Documents, load_world  # noqa: PLC0415  (loads the core)

    sources = files if packs is None else [Documents(files[0], packs=packs)]
    world = load_world(sources, conf, now)
    if not (world.objects or world.left_out):
        names = ", ".join(map(shown_name, files))
        raise InputError(wanted="the objects of a cluster", found=Words("none"), file=names)
    echo(f"note: scheduler configuration: {world.conf_source}", err=True)
    if world.left_out:
        left = ", ".join(f"{number} {kind}" for kind, number in sorted(world.left_out.items()))
        echo(f"note: not used by scheduling: {left}", err=True)
    name = shown_name(files[0])
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return Scenario(
        path=Path(f"{name}{more}"),
        name=Path(name).stem,
        objects=list(world.objects),
        conf=world.conf,
        conf_source=world.conf_source,
        now=world.now,
        seed=world.seed,
        hidden=dict(world.hidden),
        node_usage={node: dict(facts) for node, facts in world.node_usage.items()},
    )


def _only(documents: Sequence[Any]) -> Any:
    """Return the one document, None of an empty file, or all of several."""
    return list(documents) if len(documents) > 1 else next(iter(documents), None)
