"""The option --plugin on every command that runs or checks a policy."""

import json
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner
from distributed import LocalCluster

from pumice.cli.main import main
from pumice.testing import node, pod, pod_group, queue

POLICY = '''
    """Two policies of a user."""

    import numpy as np
    from pumice.plugin import Plugin, Reason


    class Last(Plugin, name="last-node"):
        """Prefer the node with the highest row."""

        def score_nodes(self, task, nodes):
            return nodes.index.astype(float)


    class Never(Plugin, name="never"):
        """Let nothing run."""

        reasons = (Reason("node(s) are never used"),)

        def filter_nodes(self, task, nodes):
            return np.zeros(len(nodes), dtype=bool)
'''
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: {}
"""
WORLD = [
    *(node(f"n{i}", cpu=4) for i in range(3)),
    queue("default"),
    pod_group("job", phase="Inqueue"),
    pod("p", group="job", cpu=1),
]


@pytest.fixture
def pumice_command() -> Any:
    def call(*words: Any) -> Any:
        return CliRunner().invoke(main, [str(word) for word in words])

    return call


@pytest.fixture
def files(tmp_path: Any, monkeypatch: Any) -> Any:
    """Change to a folder with a policy, configurations and scenarios that need it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.py").write_text(dedent(POLICY))
    for name in ("last-node", "never"):
        (tmp_path / f"{name}.conf").write_text(CONF.format(name))
    scenario = {"objects": WORLD, "conf": CONF.format("last-node")}
    expect = {"binds": {"default/p": "n2"}}
    (tmp_path / "scenario.json").write_text(json.dumps({**scenario, "expect": expect}))
    (tmp_path / "synthetic.yaml").write_text(
        dedent("""
        apiVersion: pumice.dev/v1
        kind: SyntheticWorkload
        jobs: 3
        pod: {cpu: 1}
        nodes: {count: 3, allocatable: {cpu: 4, memory: 8Gi}}
        """)
    )
    return tmp_path


def test_run_decides_with_it(files: Any, pumice_command: Any) -> None:
    result = pumice_command("run", "scenario.json", "--plugin", "policy.py", "-o", "json")
    assert json.loads(result.stdout)["binds"] == {"default/p": "n2"}
    assert result.exit_code == 0


def test_without_it_the_name_is_not_known(files: Any, pumice_command: Any) -> None:
    result = pumice_command("run", "scenario.json")
    assert result.exit_code == 2
    assert "last-node" in result.output


@pytest.mark.parametrize("source", ["policy.py", "policy.py:Last", "./policy.py"])
def test_test_compares_with_it(files: Any, pumice_command: Any, source: Any) -> None:
    result = pumice_command("test", "scenario.json", "--plugin", source)
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "1 passed, 0 failed")


def test_processes_of_a_large_test_know_it(files: Any, pumice_command: Any) -> None:
    text = (files / "scenario.json").read_text()
    (files / "many").mkdir()
    for i in range(50):
        (files / "many" / f"{i}.json").write_text(text)
    result = pumice_command("test", "many", "-j", "2", "--plugin", "policy.py")
    assert result.output.splitlines()[-1] == "50 passed, 0 failed"


def test_explain_asks_it(files: Any, pumice_command: Any) -> None:
    words = ("-f", "scenario.json", "--conf", "never.conf", "--plugin", "policy.py:Never")
    result = pumice_command("explain", "job", *words)
    assert result.exit_code == 0
    assert "never used" in result.output


def test_queue_order_knows_it(files: Any, pumice_command: Any) -> None:
    words = ("-f", "scenario.json", "--plugin", "policy.py", "-o", "json")
    assert pumice_command("queue", "order", *words).exit_code == 0


def test_whatif_knows_it_in_both_configurations(files: Any, pumice_command: Any) -> None:
    result = pumice_command(
        *("whatif", "-f", "scenario.json", "--current-conf", "never.conf"),
        *("--conf", "last-node.conf", "--plugin", "policy.py", "-o", "json"),
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["binds"] == {"default/p": ["", "n2"]}


def test_config_check_shows_what_it_decides(files: Any, pumice_command: Any) -> None:
    result = pumice_command("config", "check", "last-node.conf", "--plugin", "policy.py")
    assert result.exit_code == 0
    assert "score_nodes" in result.output
    assert "last-node" in result.output
    assert pumice_command("config", "check", "last-node.conf").exit_code == 1


def test_plugin_list_and_show_describe_it(files: Any, pumice_command: Any) -> None:
    listed = pumice_command("plugin", "list", "--plugin", "policy.py").output
    assert "Prefer the node with the highest row." in listed
    assert (
        "filter_nodes" in pumice_command("plugin", "show", "never", "--plugin", "policy.py").output
    )


def test_sim_runs_with_it(files: Any, pumice_command: Any) -> None:
    words = ("--trace", "synthetic.yaml", "--plugin", "policy.py")
    result = pumice_command("sim", *words, "--conf", "last-node.conf", "--output", "out")
    assert result.exit_code == 0
    assert ",node-2," in (files / "out" / "decisions.csv").read_text().replace(
        "node-2\n", "node-2,"
    )
    never = pumice_command("sim", *words, "--conf", "never.conf", "--output", "never")
    assert "never ran" in never.output


@pytest.mark.parametrize("jobs", [1, 2])
def test_sweep_runs_with_it_in_processes(files: Any, pumice_command: Any, jobs: Any) -> None:
    words = ("--trace", "synthetic.yaml", "--plugin", "policy.py", "--seeds", "0-1")
    result = pumice_command("sweep", *words, "--conf", "last-node.conf", "-j", jobs)
    assert result.output.splitlines()[-1] == "2 runs done, 0 failed"


def test_sweep_runs_with_it_on_a_dask_cluster(files: Any, pumice_command: Any) -> None:
    options = {"dashboard_address": None, "processes": False, "n_workers": 1}
    with LocalCluster(threads_per_worker=1, **options) as cluster:
        words = ("--trace", "synthetic.yaml", "--plugin", "policy.py", "--conf", "last-node.conf")
        result = pumice_command("sweep", *words, "--dask", cluster.scheduler_address)
    assert result.output.splitlines()[-1] == "1 run done, 0 failed"


COMMANDS = {
    "run": ("scenario.json",),
    "test": ("scenario.json",),
    "explain": ("-f", "scenario.json"),
    "whatif": ("-f", "scenario.json", "--add-nodes", "1"),
    "config check": ("last-node.conf",),
    "plugin list": (),
    "sim": ("--trace", "synthetic.yaml", "--output", "out"),
    "sweep": ("--trace", "synthetic.yaml"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_imported_ends_every_command_with_its_line(
    files: Any, pumice_command: Any, command: Any
) -> None:
    (files / "broken.py").write_text("x = 1\nx / 0\n")
    result = pumice_command(*command.split(), *COMMANDS[command], "--plugin", "broken.py")
    assert result.exit_code == 2
    assert "broken.py: line 2: expected Python that can be imported" in result.output
    assert "Traceback" not in result.output


def test_a_name_that_is_built_in_is_refused(files: Any, pumice_command: Any) -> None:
    (files / "mine.py").write_text(
        "from pumice.plugin import Plugin\nclass Mine(Plugin, name='gang'):\n    '''Mine.'''\n"
    )
    result = pumice_command("run", "scenario.json", "--plugin", "mine.py")
    assert result.exit_code == 2
    assert "mine.py: expected a name that no built-in plugin has, got 'gang'" in result.output


def test_several_files_may_be_named(files: Any, pumice_command: Any) -> None:
    (files / "more.py").write_text(
        "from pumice.plugin import Plugin\nclass More(Plugin, name='more'):\n    '''More.'''\n"
    )
    listed = pumice_command("plugin", "list", "--plugin", "policy.py", "--plugin", "more.py").output
    assert "never" in listed
    assert "more" in listed
