"""Write test results as JUnit XML, the form that build servers read.

XML holds no control characters in any form, so texts from files are written with escapes.
"""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from pumice.api.output_files import make_folder, write_file
from pumice.api.shown_text import shown
from pumice.scenarios.runner import CaseResult


def junit_xml(results: Sequence[CaseResult]) -> str:
    """Return a document with one test case for each file; the class name is its folder."""
    suite = ET.Element(
        "testsuite",
        name="pumice",
        tests=str(len(results)),
        failures=str(sum(result.outcome == "failed" for result in results)),
        errors=str(sum(result.outcome == "error" for result in results)),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=shown(str(result.path.parent)),
            name=shown(result.path.name),
            time=f"{result.seconds:.3f}",
        )
        if result.outcome in {"failed", "error"}:
            tag = "failure" if result.outcome == "failed" else "error"
            first = result.differences[0] if result.differences else ""
            lines = "\n".join(map(shown, result.differences))
            ET.SubElement(case, tag, message=shown(first)).text = lines
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def write_junit(results: Sequence[CaseResult], path: Path) -> None:
    """Write the document to a file, creating its folder if needed."""
    make_folder(path.parent)
    write_file(path, junit_xml(results))
