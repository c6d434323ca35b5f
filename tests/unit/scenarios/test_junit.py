"""JUnit XML: one test case for each file."""

from pathlib import Path
from xml.etree import ElementTree as ET

from pumice.scenarios.runner import CaseResult, junit_xml, write_junit
from tests.present import present

RESULTS = [
    CaseResult(Path("drf/001.json"), "passed", (), 0.25),
    CaseResult(Path("drf/002.json"), "failed", ("ns/a: <bound>", "and & more"), 0.5),
    CaseResult(Path("gang/001.json"), "error", ("KeyError: '\x00'",), 0.0),
]


def test_every_file_is_a_test_case_of_its_folder() -> None:
    root = ET.fromstring(junit_xml(RESULTS))  # noqa: S314  (our own text)
    suite = present(root.find("testsuite"))
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "time")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "time": "0.750",
    }
    cases = suite.findall("testcase")
    assert [(case.get("classname"), case.get("name"), case.get("time")) for case in cases] == [
        ("drf", "001.json", "0.250"),
        ("drf", "002.json", "0.500"),
        ("gang", "001.json", "0.000"),
    ]


def test_differences_are_the_text_of_the_failure() -> None:
    cases = ET.fromstring(junit_xml(RESULTS)).findall(".//testcase")  # noqa: S314
    assert list(cases[0]) == []
    failure = present(cases[1].find("failure"))
    assert failure.get("message") == "ns/a: <bound>"
    assert failure.text == "ns/a: <bound>\nand & more"
    assert present(cases[2].find("error")).text == r"KeyError: '\u0000'"


def test_the_folder_of_the_report_is_made(tmp_path: Path) -> None:
    path = tmp_path / "out" / "report.xml"
    write_junit(RESULTS, path)
    assert path.read_text() == junit_xml(RESULTS)
