"""Files with a configuration: plain text, or a ConfigMap as a cluster prints it."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.api.named_files import read_conf_file
from pumice.errors import ScenarioError

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
    assert f"{file}: data: wanted one text under a key that ends with scheduler.conf" in str(
        raised.value
    )
