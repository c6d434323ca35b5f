"""Nominations of tasks: a rollback restores those before."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.framework.session_state import Intents
from pumice.testing import queue
from pumice.testing.samples import snapshot_of

TASKS, NODES = st.integers(0, 4), st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("one"), st.tuples(TASKS, NODES)),
        st.tuples(st.just("drop"), TASKS),
        st.tuples(st.just("mark"), st.none()),
        st.tuples(st.just("back"), st.integers(0, 9)),
    ),
    max_size=25,
)


@settings(max_examples=200)
@given(steps=STEPS)
def test_nominations_are_those_of_a_dictionary_with_copies(steps: Any) -> None:
    snapshot = snapshot_of([queue("default")])
    intents, model = Intents(snapshot), dict[int, int]()
    marks: list[tuple[int, dict[int, int]]] = []
    for what, value in steps:
        if what == "one":
            intents.nominate(*value)
            model[value[0]] = value[1]
        elif what == "drop":
            intents.drop_nomination(value)
            model |= {value: -1} if value in model else {}
        elif what == "mark":
            marks.append((snapshot.journal.mark(), dict(model)))
        elif marks:
            del marks[max(1, len(marks) - value) :]
            mark, kept = marks[-1]
            snapshot.journal.rollback(mark)
            model = dict(kept)
        assert intents.nominations == model
    snapshot.journal.rollback(0)
    assert intents.nominations == {}
