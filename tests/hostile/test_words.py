"""Odd input is neither accepted in silence nor refused without file, field, found and wanted."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

NODE = (
    "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
    'status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}\n'
)
QUEUE = (
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: {weight: 1}"
)
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
SCENARIO = "objects:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
READING = [["run"], ["explain", "-f"], ["queue", "order", "-f"], ["snapshot", "show"]]


def config(cluster: str = "{server: 'http://127.0.0.1:1'}", user: str = "{}") -> str:
    return (
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        f"clusters: [{{name: k, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n"
    )


def program(more: str = "command: /absent") -> str:
    return config(user=f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, {more}}}}}")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.chdir(tmp_path)

    def invoke(*words: str, **files: str | bytes) -> Any:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            Path(name.replace("_", ".")).write_bytes(data)
        ran = CliRunner().invoke(main, words)
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
        return ran

    return invoke


@pytest.mark.parametrize("verb", [*READING, ["whatif", "--add-nodes", "1", "-f"]])
@pytest.mark.parametrize("spec", ["", "spec: null\n"])
def test_a_pod_without_a_specification_asks_for_nothing(
    run: Any, spec: str, verb: list[str]
) -> None:
    assert run(*verb, "a.yaml", a_yaml=f"{NODE}---\n{POD}{spec}").exit_code == 0


@pytest.mark.parametrize("verb", READING)
def test_a_kind_that_is_a_number_is_refused(run: Any, verb: list[str]) -> None:
    ran = run(*verb, "a.yaml", a_yaml="apiVersion: v1\nkind: 5\nmetadata: {name: x}\n")
    assert ran.exit_code == 2
    assert ran.stderr == "Error: a.yaml:2: kind: expected a non-empty string, got 5\n"


@pytest.mark.parametrize("verb", READING)
def test_a_folder_is_read_without_its_folders_and_pipes(
    run: Any, verb: list[str], tmp_path: Path
) -> None:
    (tmp_path / "d" / "e.yaml").mkdir(parents=True)
    os.mkfifo(tmp_path / "d" / "f.yaml")
    ran = run(*verb, "d")
    assert (ran.exit_code, ran.stderr) == (
        2, "Error: d: expected the objects of a cluster, got none\n",
    )  # fmt: skip
    (tmp_path / "d" / "a.yaml").write_text(f"{NODE}---\n{QUEUE}")
    assert run(*verb, "d").exit_code == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("seed: [1]\n", "seed: expected a whole number, got [1]"),
        ("seed: 1.5\n", "seed: expected a whole number, got 1.5"),
        ("expect: {binds: {a: 5}}\n", "expect.binds.a: expected the name of a node, got 5"),
        ("expect: {pipelined: {a: []}}\n", "expect.pipelined.a: expected the name of a node"),
    ],
)
def test_a_scenario_with_a_part_of_another_type(run: Any, more: str, message: str) -> None:
    ran = run("run", "s.yaml", s_yaml=SCENARIO + more)
    assert ran.exit_code == 2
    assert re.match(rf"Error: s\.yaml(:3)?: {re.escape(message)}", ran.stderr), ran.stderr


def test_an_empty_list_of_changes_is_no_file_of_changes(run: Any) -> None:
    ran = run("whatif", "-f", "a.yaml", "--changes", "c.yaml", a_yaml=NODE, c_yaml="# none\n")
    assert ran.stderr.endswith("c.yaml: expected a list of changes, got an empty file\n")


def test_a_table_with_a_column_twice(run: Any) -> None:
    ran = run("trace", "describe", "t.csv", t_csv="arrival,arrival,run\n0,1,2\n")
    assert ran.stderr == "Error: t.csv:1: expected each column once, got 'arrival'\n"


def test_half_a_character_is_a_finding(run: Any) -> None:
    ran = run("lint", "a.json", a_json='{"kind": "\\ud800"}')
    assert ran.exit_code == 1
    assert ran.stdout.startswith("a.json:1: got \\ud800, expected whole characters\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from pumice.plugin import Plugin\nclass A(Plugin, name=5): ...\n", "whose name is a tex"),
        ("raise GeneratorExit\n", "line 1: expected Python that can be imported, got 'Generator"),
        (b"x = 1\0", "p.py: expected Python that can be imported, got 'SyntaxError'"),
    ],
)
def test_a_plugin_that_is_none(run: Any, text: str | bytes, message: str) -> None:
    ran = run("run", "a.yaml", "--plugin", "p.py", a_yaml=NODE, p_py=text)
    assert ran.exit_code == 2
    assert message in ran.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (config("{server: 'ftp://a'}"), "clusters[k].cluster.server: expected an address such as"),
        (
            config("{server: 'http://a:99999'}"),
            "expected an address such as https://10.0.0.1:6443, got",
        ),
        (config(user="{token: 5}"), "users[u].user.token: expected text, got 'something else'"),
        (config(user="[5]"), "users[0].user: expected a mapping, got 'a list'"),
        (program("command: a, args: 5"), "users[].user.exec.args: expected a list, got 5"),
        (
            program("command: a, env: [b]"),
            "exec.env: expected a list of mappings with name and value",
        ),
        (program(), "users[].user.exec.command: expected a program that can be run, got '/absent'"),
        ("a: &a [*a]\n", "k:1: expected"),
        (b"a: \xe9\n", "k:1: expected UTF-8 text, got byte 0xe9"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(run: Any, text: str | bytes, message: str) -> None:
    ran = run("explain", "--kubeconfig", "k", k=text)
    assert ran.exit_code in (1, 2)
    assert message in ran.stderr
    assert "k:" in ran.stderr


def test_an_address_that_is_none(run: Any) -> None:
    ran = run("job", "list", "--master", "http://a:b")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "Error: --master: expected an address such as https://10.0.0.1:6443, got 'http://a:b'\n",
    )
