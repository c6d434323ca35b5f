"""The cases of a scenario file: one, one for each combination of a matrix, or drawn ones."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pumice.errors import ScenarioError
from pumice.scenarios.drawn import Document, Draw, is_drawn, with_room
from pumice.scenarios.matrix import cases_of
from pumice.scenarios.scenario import TOP_KEYS, Scenario, located_scenario


@dataclass(frozen=True, kw_only=True)
class Case:
    """A scenario, or one of which many are drawn."""

    scenario: Scenario
    """The one, or the first that is drawn."""
    draw: Draw | None = None
    words: str = ""
    """Which combination of a matrix it is."""

    def drawn(self) -> Iterator[tuple[Document, Scenario]]:
        """Yield all that are drawn."""
        draw, path = self.draw, self.scenario.path
        for number in range(draw.cases if draw is not None else 0):
            if draw is not None:
                document = drawn_document(draw, number, path)
                yield document, replace(located_scenario(document, path), conf=self.scenario.conf)


def cases_from(document: Any, path: Path) -> Iterator[Case]:
    """Yield the cases of a document.

    Raises:
        ScenarioError: The document is not a scenario or breaks the format.
    """
    if not isinstance(document, dict):
        yield Case(scenario=located_scenario(document, path))
        return
    for words, one in cases_of(path, document, TOP_KEYS):
        draw = Draw(path, one) if is_drawn(one) else None
        shown = one if draw is None else drawn_document(draw, 0, path)
        scenario = located_scenario(shown, path)
        if words:
            scenario = replace(scenario, name=f"{scenario.name} [{words}]")
        yield Case(scenario=scenario, draw=draw, words=words)


def drawn_document(draw: Draw, number: int, path: Path) -> Document:
    """Return one drawn document in which every running pod has room."""

    def has_room(document: Document) -> bool:
        try:
            located_scenario({**document, "at": None}, path)
        except ScenarioError as error:
            if error.field.endswith(".running"):
                return False
            raise
        return True

    return with_room(draw.document(number), has_room, draw.kept())
