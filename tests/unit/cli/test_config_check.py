"""`pumice config check` with the plugins that there are: what it warns of."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.cli.main import main


def check(path: Path) -> Result:
    return CliRunner().invoke(main, ["config", "check", str(path)])


def test_config_check_warns_of_tiers_that_let_protected_pods_go(tmp_path: Path) -> None:
    path = tmp_path / "my.conf"
    tiers = "tiers:\n- plugins: [{name: conformance}]\n- plugins: [{name: drf}]\n"
    path.write_text(f'actions: "allocate, preempt"\n{tiers}')
    result = check(path)
    assert result.exit_code == 0
    assert "drf in tier 2 (preempt)" in result.stderr
    assert "critical pods may be evicted" in result.stderr


def test_config_check_tells_of_a_part_that_is_enabled_without_a_weight(tmp_path: Path) -> None:
    path = tmp_path / "my.conf"
    plugin = "{name: resource-strategy-fit, arguments: {sra: {enable: true, resources: a/b}}}"
    path.write_text(f'actions: "allocate"\ntiers:\n- plugins: [{plugin}]\n')
    result = check(path)
    assert "sra is enabled and has no effect" in result.stderr
    assert result.exit_code == 0


def test_config_check_reads_the_config_map_of_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "cm.yaml"
    path.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  volcano-scheduler.conf: |\n"
        '    actions: "allocate"\n    tiers:\n    - plugins: [{name: gnag}]\n'
    )
    result = check(path)
    assert result.exit_code == 1
    assert result.output.startswith(f"{path}: volcano-scheduler.conf: line 3: tiers[0].plugins[0]")


def conf_with(*plugins: str) -> str:
    return f'actions: "allocate"\ntiers:\n- plugins: [{", ".join(plugins)}]\n'


def test_two_plugins_that_limit_queues_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "my.conf"
    path.write_text(conf_with("{name: proportion}", "{name: gang}", "{name: capacity}"))
    result = check(path)
    assert result.exit_code == 0
    assert "expected one plugin that limits queues, got 'capacity'" in result.stderr
    assert "proportion on line 3 limits them too" in result.stderr
    path.write_text(conf_with("{name: proportion}", "{name: gang}"))
    assert check(path).stderr == ""


def test_an_argument_that_has_moved_names_its_plugin(tmp_path: Path) -> None:
    path = tmp_path / "my.conf"
    arguments = "{predicate.GPUSharingEnable: true, predicate.PodAfinityEnable: true}"
    path.write_text(conf_with(f"{{name: predicates, arguments: {arguments}}}"))
    moved, misspelt = check(path).stderr.splitlines()
    assert "argument of the plugin deviceshare: 'deviceshare.GPUSharingEnable'" in moved
    assert "did you mean 'predicate.PodAffinityEnable'?" in misspelt


def test_config_check_reads_standard_input() -> None:
    given = conf_with("{name: gnag}")
    result = CliRunner().invoke(main, ["config", "check", "-"], input=given)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>: line 3: ")


def test_config_check_of_a_scenario_reads_the_configuration_inside(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(
        "objects: []\nconf: |\n  actions: allocate\n  tiers:\n  - plugins: [{name: gnag}]\n"
    )
    result = check(path)
    assert result.exit_code == 1
    wanted = f"{path}: conf: line 3: tiers[0].plugins[0]"
    assert wanted in result.output
    assert "did you mean 'gang'?" in result.output
    path.write_text("objects: []\nconf: {actions: allocate, tiers: [{plugins: [{name: gang}]}]}\n")
    assert f"{path}: conf: no problems\nactions: allocate\n" in check(path).output


@pytest.mark.parametrize("tiers", ["", "tiers: []\n", "tiers: [{plugins: []}]\n"])
def test_a_configuration_without_plugins_is_warned_of(tmp_path: Path, tiers: str) -> None:
    path = tmp_path / "my.conf"
    path.write_text(f"actions: allocate\n{tiers}", encoding="utf-8")
    result = check(path)
    assert (result.exit_code, "no problems" in result.output) == (0, False)
    assert "tiers: expected plugins, got none (without predicates" in result.output


def test_config_check_of_a_scenario_follows_to_the_file_of_its_configuration(
    tmp_path: Path,
) -> None:
    (tmp_path / "my.conf").write_text(conf_with("{name: gnag}"))
    path = tmp_path / "case.yaml"
    path.write_text("objects: []\nconfFrom: my.conf\n")
    assert f"{tmp_path / 'my.conf'}: line 3: tiers[0].plugins[0]" in check(path).output


ROOT = Path(__file__).parents[3]
DRAFT = ROOT / "examples" / "capacity-tree" / "draft.conf"
"""The mistake that a tutorial finds."""
SHIPPED = {*ROOT.glob("examples/**/*.conf"), *ROOT.glob("src/pumice/**/*.conf")} - {DRAFT}


@pytest.mark.parametrize("path", sorted(SHIPPED), ids=lambda path: path.name)
def test_shipped_configurations_give_no_warning(path: Path) -> None:
    cluster = str(ROOT / "examples" / "first-cluster.yaml")
    result = CliRunner().invoke(main, ["config", "check", str(path), "--cluster", cluster])
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_configuration_is_checked_with_its_cluster(tmp_path: Path) -> None:
    """The warnings have the change that helps; without a file, the cluster's own is checked."""
    conf = tmp_path / "new.conf"
    conf.write_text(conf_with("{name: gang}").replace('"allocate"', '"preempt"'))
    cluster = str(ROOT / "examples" / "first-cluster.yaml")
    result = CliRunner().invoke(main, ["config", "check", str(conf), "--cluster", cluster])
    assert (result.exit_code, "no errors" in result.stdout) == (0, True)
    assert "no pod is bound: the action allocate is missing" in result.stderr
    assert "write - name: priority before gang" in result.stderr
    strict = ["config", "check", "--cluster", cluster, "--strict", "-o", "json"]
    own = CliRunner().invoke(main, strict)
    assert json.loads(own.stdout)["file"] == f"{cluster}: conf"
    assert CliRunner().invoke(main, ["config", "check"]).exit_code == 2
