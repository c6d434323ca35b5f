"""Files that a scenario names are read if they are what it says, and otherwise never quoted."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.named_files import read_conf_file
from pumice.cli.main import main
from pumice.diagnosis.sources import load_world
from pumice.errors import InputError, ScenarioError

SECRET = "hunter2"  # noqa: S105  # planted
PRIVATE = {
    "shadow": f"root:$6${SECRET}:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
    "key": f"-----BEGIN KEY-----\n{SECRET}\n-----END KEY-----\n",
    "env": f"PASSWORD={SECRET}\nUSER=x\n",
    "token.json": f'{{"token": "{SECRET}"}}',
    "broken.json": f'{{"token": {SECRET}}}',
    "broken.yaml": f"a: *{SECRET}\n",
    "twice.yaml": f"{SECRET}: 1\n{SECRET}: 2\n",
    "kubeconfig": f"apiVersion: v1\nkind: Config\nusers: [{{user: {{token: {SECRET}}}}}]\n",
    "kind": f"kind: {SECRET}\n",
    "list": f"kind: PodList\nitems: [{SECRET}]\n",
    "metadata": f"kind: Pod\napiVersion: v1\nmetadata: {SECRET}\n",
    "map": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{}}\ndata: {{{SECRET}: x}}\n",
    "keys": f"{SECRET}: x\nactions-of-{SECRET}: y\n",
}
COMMANDS = (
    ["run"],
    ["test"],
    ["config", "check"],
    ["lint"],
    ["snapshot", "show"],
    ["explain", "-f"],
    ["queue", "order", "-f"],
)


def said(command: list[str], scenario: Path) -> str:
    done = CliRunner().invoke(main, [*command, str(scenario)])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.output


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("key", ["objectsFrom: [{}]", "confFrom: {}"])
@pytest.mark.parametrize("where", ["{}", "../there/{}", "{folder}/{}", "link"])
def test_the_content_of_another_file_is_never_quoted(
    tmp_path: Path, name: str, key: str, where: str
) -> None:
    here = tmp_path / "here"
    there = here if where == "{}" else tmp_path / "there"
    for folder in (here, there):
        folder.mkdir(exist_ok=True)
    (there / name).write_text(PRIVATE[name])
    (here / "link").symlink_to(there / name)
    named = key.format(where.format(name, folder=there))
    scenario = here / "scenario.yaml"
    scenario.write_text(f"objects: []\n{named}\n")
    for command in COMMANDS:
        assert SECRET not in said(command, scenario), command
    answer = said(["run"], scenario)
    assert name in answer or "link" in answer


@pytest.mark.parametrize("key", ["objectsFrom: [pipe]", "confFrom: pipe", "objectsFrom: ['-']"])
def test_pipes_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("scenario.yaml").write_text(f"objects: [{{kind: Pod, metadata: 5}}]\n{key}\n")
    for command in COMMANDS:
        said(command, Path("scenario.yaml"))
    Path("scenario.yaml").write_text(f"objects: []\n{key}\n")
    assert "expected the name of a file, got a pipe or a device" in said(
        ["run"], Path("scenario.yaml")
    )


def test_an_error_inside_a_named_manifest_still_names_field_and_value(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: lots}}\n"
    )
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("objectsFrom: [nodes.yaml]\n")
    answer = said(["run"], scenario)
    assert "nodes.yaml" in answer
    assert "lots" in answer


def test_relative_names_may_lead_to_a_neighbour(tmp_path: Path) -> None:
    for folder in ("conf", "cases"):
        (tmp_path / folder).mkdir()
    (tmp_path / "conf/scheduler.conf").write_text(
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
    )
    (tmp_path / "conf/nodes.yaml").write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 1}}\n"
    )
    scenario = tmp_path / "cases/scenario.yaml"
    scenario.write_text(
        "objectsFrom: [../conf/nodes.yaml]\nconfFrom: ../conf/scheduler.conf\nexpect: {binds: {}}\n"
    )
    assert CliRunner().invoke(main, ["test", str(scenario)]).exit_code == 0


@pytest.mark.parametrize("name", ["circle", "\0", "a" * 5000, ".", "..", "/dev/zero", "below"])
def test_names_of_no_file_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "below").mkdir()
    for content in ({"objectsFrom": [name]}, {"objects": [], "confFrom": name}):
        scenario = tmp_path / "scenario.yaml"
        scenario.write_text(json.dumps(content))
        for command in COMMANDS:
            said(command, scenario)
        assert CliRunner().invoke(main, ["run", str(scenario)]).exit_code == 2


def test_a_text_names_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes.yaml").write_text("")
    for text in ("objectsFrom: [nodes.yaml]\n", "objects: []\nconfFrom: nodes.yaml\n"):
        with pytest.raises(InputError, match="no names of files in a text"):
            load_world([text])


TEXT = 'actions: "allocate"\n'


def config_map(**data: Any) -> str:
    metadata = {"name": "volcano-scheduler-configmap"}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


@pytest.mark.parametrize("text", [TEXT, f"# of the ConfigMap\n{TEXT}", "# ConfigMap\na: [\n"])
def test_a_plain_file_is_its_own_text(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.conf"
    file.write_text(text)
    assert read_conf_file(file) == (text, str(file))


def test_a_config_map_has_the_text_under_a_key(tmp_path: Path) -> None:
    file = tmp_path / "cm.yaml"
    file.write_text(config_map(**{"volcano-scheduler.conf": TEXT, "other.txt": "x"}))
    assert read_conf_file(file) == (TEXT, f"{file}: volcano-scheduler.conf")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"notes.txt": "x"},
        {"a-scheduler.conf": TEXT, "b-scheduler.conf": TEXT},
        {"volcano-scheduler.conf": 3},
    ],
)
def test_a_config_map_without_one_configuration_is_refused(tmp_path: Path, data: Any) -> None:
    file = tmp_path / "cm.yaml"
    file.write_text(config_map(**data))
    with pytest.raises(ScenarioError) as raised:
        read_conf_file(file, ScenarioError)
    assert f"{file}: data: expected one text under a key that ends with scheduler.conf" in str(
        raised.value
    )
