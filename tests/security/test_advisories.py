"""What others were attacked through, tried on Pumice; the table is in docs/threat-model.md."""

import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.apiserver.served_cluster import ServedCluster
from pumice.cli.main import main
from pumice.scheduler import Scheduler
from pumice.serve import endpoints
from pumice.testing import node, pod, pod_group, queue

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "threat-model.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(?:\w+::)?(test_\w+)`")


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) >= 25
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).exists() or f"def {test}(" not in (ROOT / file).read_text()
    ]
    assert missing == []


@pytest.mark.parametrize(
    "advisory",
    ["CVE-2024-36533", "CVE-2025-32777", "CVE-2026-44247", "CVE-2026-24177", "CVE-2026-24176",
     *(f"ADA-{number}" for number in (2, 7, 8, 9, 10)), "#5749"],
)  # fmt: skip
def test_every_advisory_has_a_row_with_a_test(advisory: str) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if advisory in line and "|" in line]
    assert rows, advisory
    assert all(NAMED.search(row) for row in rows)


def test_no_source_is_executable() -> None:
    """Scripts are started by a verb or an interpreter; the one that CI starts is marked."""
    listed = subprocess.run(
        ["git", "ls-files", "-s"],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a repository")
    executable = [
        line.split("\t")[1] for line in listed.stdout.splitlines() if line[:6] == "100755"
    ]
    assert executable == [".ci/run"]
    modes = [stat.S_IMODE(file.stat().st_mode) for file in (ROOT / "src").rglob("*.py")]
    assert not any(mode & 0o111 for mode in modes)


def test_there_is_no_way_to_profile_or_debug_over_http() -> None:
    """Flags of Volcano for it are taken and do nothing."""
    source = Path(endpoints.__file__).read_text(encoding="utf-8")
    paths = re.findall(r'add_(?:get|post|route)\("([^"]+)"', source)
    assert sorted(paths) == ["/healthz", "/livez", "/metrics", "/readyz"]


def test_an_embedded_cluster_listens_on_this_machine_only() -> None:
    served = ServedCluster()
    try:
        assert served.url.startswith("http://127.0.0.1:")
    finally:
        served.stop()


def decided(*objects: Any) -> Any:
    return Scheduler(parse_conf(DEFAULT_CONF)).cycle(list(objects), 1_767_225_600.0)


def inside(manifest: Any, namespace: str) -> Any:
    manifest["metadata"]["namespace"] = namespace
    return manifest


@pytest.mark.parametrize("name", ["g", "victim/g", "victim%2Fg", "../victim/g"])
def test_a_pod_joins_no_group_of_another_namespace(name: str) -> None:
    """A gang of two in one namespace is not completed by a pod of another."""
    group = inside(pod_group("g", min_member=2, phase="Inqueue"), "victim")
    own = inside(pod("a", group="g", cpu=1), "victim")
    stranger = inside(pod("b", group="g", cpu=1), "attacker")
    stranger["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name
    decisions = decided(queue("default"), node("n1", cpu=4), group, own, stranger)
    assert "victim/a" not in decisions.binds
    completed = inside(pod("c", group="g", cpu=1), "victim")
    again = decided(queue("default"), node("n1", cpu=4), group, own, stranger, completed)
    assert {"victim/a", "victim/c"} <= set(again.binds)


def test_a_tenant_of_a_full_queue_does_not_keep_another_queue_waiting() -> None:
    """A thousand jobs beyond their queue's limit cost the other queue no turn."""
    greedy = queue("greedy", weight=1)
    greedy["spec"]["capability"] = {"cpu": "1"}
    flood = [
        thing
        for i in range(200)
        for thing in (
            pod_group(f"f{i}", min_member=1, queue="greedy"),
            pod(f"f{i}-0", group=f"f{i}", cpu=1),
        )
    ]
    modest = [pod_group("m", min_member=1, queue="modest"), pod("m-0", group="m", cpu=1)]
    decisions = decided(greedy, queue("modest"), node("n1", cpu=8), *flood, *modest)
    assert "default/m-0" in decisions.binds
    assert sum(name.startswith("default/f") for name in decisions.binds) <= 1


def test_help_names_plugins_as_code() -> None:
    told = [
        " ".join(str(param.help).split())
        for command in _commands(main)
        for param in command.params
        if isinstance(param, click.Option) and "--plugin" in param.opts
    ]
    assert len(told) > 5
    assert all("code that runs with your permissions" in each for each in told)


def _commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _commands(found)
