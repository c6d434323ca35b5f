"""Records at URLs: the same record in every store that fsspec reaches."""

import sys
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from pumice.errors import InputError
from pumice.records import stores
from pumice.records.history import History
from pumice.records.recorder import Recorder
from pumice.records.segments import segment_files
from pumice.scenarios.scenario import load_scenario
from tests.unit.records.test_record import START, Played, redacted, shown


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    return f"memory://{request.node.name.partition('[')[0]}/record"


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_a_record_in_a_store_is_that_of_a_disk(
    url: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "PUT_S", 0.0)
    place = Path(url if scheme == "memory" else f"file://{tmp_path}/record")
    played = Played(place, segment_s=10.0, age_s=80.0)
    played.play(100)
    history = History(place)
    assert START + 10 <= history.start < START + 30  # older segments were dropped
    recent = [each for each in played.states if each[0] > START + 65]
    assert all(shown(history, at) == redacted(objects) for at, objects in recent)
    assert len([step for step in history.steps() if step.is_first]) > 1  # thinned before that
    assert history.problems == []
    played.recorder.close()
    assert (tmp_path / "record").is_dir() == (scheme == "file")


def test_a_store_is_behind_by_a_stated_time_at_most(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 100.0
    monkeypatch.setattr("time.monotonic", lambda: passed)
    played = Played(Path(url))
    played.put("first")
    played.tick()
    played.put("second")
    played.tick()
    assert shown(History(Path(url))).keys() == {"first"}
    passed += stores.PUT_S
    played.tick()  # also if nothing changes any more
    assert shown(History(Path(url))).keys() == {"first", "second"}
    played.put("third")
    played.recorder.close()
    assert shown(History(Path(url))).keys() == {"first", "second", "third"}


def test_whoever_records_to_a_store_last_goes_on(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stores, "PUT_S", 0.0)
    old = Played(Path(url))
    old.play(5)
    new = Played(Path(url))
    new.now = old.now
    new.play(5, seed=1)
    old.put("lost")
    old.tick(6.0)
    old.tick(6.0)
    new.play(5, seed=2)
    assert caplog.text.count("cannot record") == 1
    assert "another process has begun to record here" in str(caplog.records[0].__dict__["values"])
    assert shown(History(Path(url))) == redacted(new.objects)
    old.recorder.close()
    new.recorder.close()
    assert [each.name for each in UPath(url).iterdir()] == [
        path.name for path in segment_files(stores.located(Path(url))).values()
    ]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("nope://bucket/record", "nope://bucket/record: .* got nope://.*such as s3://"),
        ("memory://none/record", "memory://none/record: .* got RuntimeError: no credentials"),
    ],
)
def test_a_store_that_cannot_be_reached_is_named(
    place: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no credentials")  # an error of its library

    monkeypatch.setattr(type(UPath("memory://x").fs), "isdir", fail)
    with pytest.raises(InputError, match=problem):
        History(Path(place))
    with pytest.raises(InputError, match=problem):
        Recorder(Path(place), lambda: START, by="observer")


def test_a_store_without_a_record_is_named(url: str) -> None:
    with pytest.raises(InputError, match=f"{url}: expected a directory with a record, .*nothing"):
        History(Path(url))


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(InputError, match=r"s3://b/record: .*pip install universal-pathlib"):
        History(Path("s3://b/record"))


@pytest.mark.parametrize(
    "place",
    [
        "dask://127.0.0.1:9/x",  # unpickles what a server answers
        "reference://a::file:///x.json",
        "dir::dask://127.0.0.1:9/x",
        "s3://bucket/x::dask://127.0.0.1:9/x",
        "jupyter://127.0.0.1:9/x",
    ],
)
def test_no_address_chooses_code_to_run_or_a_way_around(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("upath.UPath.__new__", _never)
    with pytest.raises(InputError, match=r"such as s3://.*, one alone"):
        stores.located(Path(place))


def _never(*_: Any, **__: Any) -> Any:
    pytest.fail("nothing is to be opened")


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(InputError, match="a password in it") as caught:
        stores.located(Path("sftp://me:hunter2@host/record"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "http://127.0.0.1:9/record",
        "sftp://me@127.0.0.1/record",
        "smb:/127.0.0.1/record",
        "dask://127.0.0.1:9/x::file:///x",
        "./dask://127.0.0.1:9/x::file:///x",
    ],
)
def test_a_file_chooses_no_server_to_be_asked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("socket.socket.connect", _never)
    monkeypatch.setattr("upath.UPath.__new__", _never)
    scenario = Path("scenario.yaml")
    scenario.write_text(f"objectsFrom: ['{name}']\n")
    with pytest.raises(InputError, match=r"a server that a file chooses|one alone|No such file"):
        load_scenario(scenario)
