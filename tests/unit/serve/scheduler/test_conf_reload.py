"""A configuration file is read again when it changes; a bad one never replaces a good one."""

from pathlib import Path
from typing import Any

import pytest

from pumice import logs
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.errors import ConfError, InputError
from pumice.metrics import Metrics
from pumice.serve.scheduler.conf_reload import ConfFile

GOOD = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
OTHER = 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n'
BAD = "actions: [\n"


@pytest.fixture
def path(tmp_path: Path) -> Any:
    return tmp_path / "volcano-scheduler.conf"


def accepted(conf: Any) -> Any:
    """Refuse what is wrong, as a scheduler does."""
    if conf.problems:
        raise ConfError(conf.problems)
    return conf


def follow(path: Any, metrics: Any = None, *, strict: bool = False, build: Any = accepted) -> Any:
    return ConfFile(str(path), build, metrics=metrics, strict=strict)


def reloads(metrics: Any) -> Any:
    lines = metrics.text().splitlines()
    found = [line for line in lines if line.startswith("pumice_conf_reloads_total{")]
    return {line.split('"')[1]: int(line.rpartition(" ")[2]) for line in found}


def test_without_a_file_the_built_in_configuration_is_used_and_stays() -> None:
    file = follow("")
    assert file.current == parse_conf(DEFAULT_CONF)
    assert not file.poll()


def test_a_file_written_anew_with_the_same_bytes_is_no_change(path: Any) -> None:
    path.write_text(GOOD)
    file = follow(path)
    before = file.current
    path.unlink()
    path.write_text(GOOD)
    assert not file.poll()
    assert file.current is before


def test_a_swapped_folder_of_a_configmap_is_a_change(tmp_path: Path) -> None:
    """As the kubelet mounts it: file -> ..data/file, ..data -> a folder with the time."""
    for name, text in (("..1", GOOD), ("..2", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conf").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "conf").symlink_to("..data/conf")
    file = follow(tmp_path / "conf")
    assert file.current.actions == ("allocate",)
    (tmp_path / "..data_tmp").symlink_to("..2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert file.poll()
    assert file.current.actions == ("allocate", "backfill")


def test_a_bad_file_is_reported_once_and_the_last_good_one_stays(
    path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text(GOOD)
    metrics = Metrics()
    file = follow(path, metrics)
    path.write_text(BAD)
    logs.set_verbosity(0)
    assert not file.poll()
    assert not file.poll()
    assert file.current.actions == ("allocate",)
    assert isinstance(file.problem, ConfError)
    assert str(path) in str(file.problem)
    assert reloads(metrics) == {"good": 1, "bad": 1}
    assert "pumice_conf_good 0" in metrics.text()
    assert [record.levelname for record in caplog.records if "not usable" in record.message] == [
        "ERROR"
    ]
    path.write_text(OTHER)
    assert file.poll()
    assert "pumice_conf_good 1" in metrics.text()


def test_a_file_that_is_gone_leaves_the_last_good_one(path: Any) -> None:
    path.write_text(GOOD)
    file = follow(path)
    path.unlink()
    assert not file.poll()
    assert file.current.actions == ("allocate",)
    assert "readable file" in str(file.problem)
    path.write_text(GOOD)
    assert not file.poll()
    assert file.problem is None


@pytest.mark.parametrize("text", [BAD, None])
def test_a_bad_file_at_the_start_gives_the_built_in_configuration(path: Any, text: Any) -> None:
    if text is not None:
        path.write_text(text)
    file = follow(path)
    assert file.current == parse_conf(DEFAULT_CONF)
    path.write_text(GOOD)
    assert file.poll()


def test_a_bad_file_at_the_start_is_refused_if_it_must_be_good(path: Any) -> None:
    path.write_text(BAD)
    with pytest.raises(InputError):
        follow(path, strict=True)


def test_bytes_that_are_no_text_are_refused(path: Any) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="expected text in UTF-8, got a bad byte at 0"):
        follow(path, strict=True)
