"""Log lines look like klog's or are JSON, and verbosity decides which are written."""

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pumice import logs


@pytest.fixture
def stream() -> Iterator[Any]:
    """Log to a text, and leave logging as it was."""
    root, ours = logging.getLogger(), logging.getLogger("pumice")
    before = root.handlers[:], root.level, ours.level, threading.excepthook
    yield io.StringIO()
    root.handlers[:], threading.excepthook = before[0], before[3]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    logs.set_verbosity(0)


def test_a_line_has_klogs_header_and_values_by_name(stream: Any) -> None:
    logs.set_up(stream=stream)
    logs.get("scheduler").info("cycle done", binds=3, took=0.25, queue="a b", ok=True)
    assert re.fullmatch(
        r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "
        r'cycle done binds=3 took=0\.25 queue="a b" ok=true\n',
        stream.getvalue(),
    )


@pytest.mark.parametrize(("method", "letter"), [("info", "I"), ("warning", "W"), ("error", "E")])
def test_the_first_letter_tells_how_bad_it_is(stream: Any, method: str, letter: str) -> None:
    logs.set_up(stream=stream)
    getattr(logs.get("x"), method)("m")
    assert stream.getvalue()[0] == letter


def test_lines_of_a_higher_verbosity_are_left_out(stream: Any) -> None:
    logs.set_up(stream=stream, level=2)
    log = logs.get("x")
    for level in range(5):
        log.v(level).info(f"at {level}")
    assert re.findall(r"at \d", stream.getvalue()) == ["at 0", "at 1", "at 2"]
    assert log.v(2).enabled
    assert not log.v(3).enabled


def test_a_part_can_have_a_verbosity_of_its_own(stream: Any) -> None:
    logs.set_up(stream=stream, level=0, vmodule={"lea*": 4})
    logs.get("lease").v(4).info("reported")
    logs.get("other").v(4).info("not reported")
    assert "reported" in stream.getvalue()
    assert "not reported" not in stream.getvalue()


def test_errors_are_reported_at_any_verbosity(stream: Any) -> None:
    logs.set_up(stream=stream)
    logs.get("x").v(9).error("broken", error=ValueError('a "b"\nc'))
    assert r'broken error="a \"b\"\nc"' in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_json_lines_can_be_read_back(stream: Any) -> None:
    logs.set_up(stream=stream, json_lines=True)
    logs.get("scheduler").warning("late", seconds=1.5, error=ValueError("x"), msg="clash")
    line = json.loads(stream.getvalue())
    assert line["msg"] == "late"
    assert line["severity"] == "warning"
    assert line["logger"] == "pumice.scheduler"
    assert (line["seconds"], line["error"], line["msg_"]) == (1.5, "x", "clash")
    assert line["caller"].startswith("test_logs.py:")


def test_headers_can_be_left_out(stream: Any) -> None:
    logs.set_up(stream=stream, headers=False)
    logs.get("x").info("plain")
    assert stream.getvalue() == "plain\n"


def test_other_libraries_are_heard_when_something_is_wrong(stream: Any) -> None:
    logs.set_up(stream=stream)
    logging.getLogger("aiohttp").info("chatter")
    logging.getLogger("aiohttp").warning("trouble")
    assert "trouble" in stream.getvalue()
    assert "chatter" not in stream.getvalue()


def test_what_ends_a_thread_is_logged(stream: Any) -> None:
    logs.set_up(stream=stream)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert "a thread ended" in stream.getvalue()
    assert "ZeroDivisionError" in stream.getvalue()
