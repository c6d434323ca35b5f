"""Terms of pods about other pods, as they are read from specifications."""

from typing import Any

import pytest

from pumice.api.meta import LabelSelector, LabelSelectorRequirement
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.shape_terms import ANY_IP, ShapeTerms, TermBook
from pumice.core.snapshot import Snapshot
from pumice.testing import pod
from pumice.testing.samples import snapshot_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}


def near(key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": WEB, **more}


def even(**more: Any) -> dict[str, Any]:
    base = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {**base, "labelSelector": WEB, **more}


def book_of(*pods: Any) -> TermBook:
    book = TermBook(snapshot_of(pods))
    book.start()
    return book


def read(spec: Any, labels: Any = None, namespace: str = "default") -> tuple[TermBook, Any]:
    book = book_of(pod("p", spec=spec, labels=labels, namespace=namespace))
    tasks = book.snapshot.tasks
    shape = book.snapshot.shapes[tasks.shape[0]]
    return book, book.of(shape, int(tasks.label_class[0]))


def affinity(kind: str, **terms: Any) -> dict[str, Any]:
    return {"affinity": {kind: terms}}


def test_a_pod_that_speaks_of_nobody_has_no_terms() -> None:
    book, terms = read({})
    assert (terms, book.speaking, book.varies(0)) == (None, [], False)
    assert ShapeTerms().is_empty


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (affinity("podAffinity", **{REQUIRED: [near()]}), "required"),
        (affinity("podAntiAffinity", **{REQUIRED: [near()]}), "anti"),
        (
            affinity("podAffinity", **{PREFERRED: [{"weight": 3, "podAffinityTerm": near()}]}),
            "preferred",
        ),
        (
            affinity("podAntiAffinity", **{PREFERRED: [{"weight": 3, "podAffinityTerm": near()}]}),
            "preferred",
        ),
        ({"topologySpreadConstraints": [even()]}, "hard_spread"),
        ({"topologySpreadConstraints": [even(whenUnsatisfiable="ScheduleAnyway")]}, "soft_spread"),
        (
            {
                "containers": [
                    {"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}
                ]
            },
            "ports",
        ),
    ],
)
def test_each_kind_of_term_is_found_alone(spec: Any, field: str) -> None:
    book, terms = read(spec)
    fields = ("required", "anti", "preferred", "hard_spread", "soft_spread", "ports")
    assert [name for name in fields if getattr(terms, name)] == [field]
    assert not terms.is_empty
    assert (book.speaking, terms.varies) == ([0], False)


def test_wishes_carry_their_weight_and_dislikes_a_negative_one() -> None:
    def wish(weight: int, key: str) -> Any:
        return {"weight": weight, "podAffinityTerm": near(key)}

    _, terms = read(
        {
            "affinity": {
                "podAffinity": {PREFERRED: [wish(5, "zone"), wish(0, "rack")]},
                "podAntiAffinity": {PREFERRED: [wish(7, "host")]},
            }
        }
    )
    assert [(weight, term.key) for weight, term in terms.preferred] == [(5, "zone"), (-7, "host")]


@pytest.mark.parametrize(
    ("term", "namespaces", "selects"),
    [
        (near(), {"team"}, False),
        (near(namespaces=["a", "b"]), {"a", "b"}, False),
        (near(namespaceSelector={}), set(), True),
        (near(namespaces=["a"], namespaceSelector={}), {"a"}, True),
    ],
)
def test_a_term_is_about_its_own_namespace_unless_it_names_others(
    term: Any, namespaces: Any, selects: bool
) -> None:
    _, terms = read(affinity("podAffinity", **{REQUIRED: [term]}), namespace="team")
    matcher = terms.required[0].matcher
    assert matcher.namespaces == namespaces
    assert (matcher.namespace_selector is not None) == selects


@pytest.mark.parametrize(
    ("labels", "namespace", "wanted"),
    [
        ({"app": "web"}, "default", True),
        ({"app": "db"}, "default", False),
        ({"app": "web"}, "chosen", True),
        ({"app": "web"}, "other", False),
        ({"app": "web"}, "unknown", False),
    ],
)
def test_a_matcher_means_pods_by_labels_and_namespace(
    labels: Any, namespace: str, wanted: bool
) -> None:
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": marks}}
        for name, marks in (("chosen", {"kind": "x"}), ("other", {"kind": "y"}))
    ]
    book = book_of(*spaces)
    matcher = book.matcher(
        frozenset({"default"}),
        LabelSelector(match_labels={"kind": "x"}),
        LabelSelector(match_labels={"app": "web"}),
    )
    assert matcher.means(book, namespace, labels) == wanted
    assert not book.nobody.means(book, namespace, labels)


def condition(key: str, operator: Any, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("selector", "anchor"),
    [
        (None, None),
        (LabelSelector(), None),
        (LabelSelector(match_labels={"a": "1"}), ("a", "1")),
        (LabelSelector(match_expressions=(condition("a", "In", "1"),)), ("a", "1")),
        (LabelSelector(match_expressions=(condition("a", "In", "1", "2"),)), None),
        (LabelSelector(match_expressions=(condition("a", "NotIn", "1"),)), None),
        (
            LabelSelector(match_expressions=(condition("a", "Exists"), condition("b", "In", "2"))),
            ("b", "2"),
        ),
    ],
)
def test_classes_are_those_that_are_meant_and_grow_with_new_ones(
    selector: Any, anchor: Any
) -> None:
    """The anchor only narrows the search: a label that each of them must have."""

    def one(i: int) -> Any:
        labels = {"a": str(i % 3), "b": str(i % 4)}
        return pod(f"p{i}", labels={k: v for k, v in labels.items() if v != "0"})

    ingest = Ingest(Snapshot())
    ingest.load([from_manifest(one(i)) for i in range(5)])
    book = TermBook(ingest.snapshot)
    book.start()
    matcher = book.matcher(frozenset({"default"}), None, selector)
    assert matcher.anchor == anchor
    for n in (5, 12):
        ingest.load([from_manifest(one(i)) for i in range(n)])
        known = ingest.snapshot.label_classes
        wanted = [row for row, each in enumerate(known) if matcher.means(book, *each)]
        assert sorted(matcher.classes(book)) == wanted
        assert sorted(matcher.classes(book)) == wanted
    assert book.matcher(frozenset({"default"}), None, selector) is matcher


@pytest.mark.parametrize(
    ("more", "field", "wanted"),
    [
        ({}, "max_skew", 2),
        ({}, "min_domains", 1),
        ({"minDomains": 4}, "min_domains", 4),
        ({}, "honours_affinity", True),
        ({"nodeAffinityPolicy": "Honor"}, "honours_affinity", True),
        ({"nodeAffinityPolicy": "Ignore"}, "honours_affinity", False),
        ({}, "honours_taints", False),
        ({"nodeTaintsPolicy": "Honor"}, "honours_taints", True),
        ({"nodeTaintsPolicy": "Ignore"}, "honours_taints", False),
        ({"topologyKey": "rack"}, "key", "rack"),
    ],
)
def test_a_spread_has_the_defaults_of_kubernetes(more: Any, field: str, wanted: Any) -> None:
    _, terms = read({"topologySpreadConstraints": [even(**more)]})
    assert getattr(terms.hard_spread[0], field) == wanted


@pytest.mark.parametrize(
    ("selector", "counts"),
    [
        ({}, False),
        (WEB, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        (None, True),
    ],
)
def test_an_empty_selector_of_a_spread_counts_nobody(selector: Any, counts: bool) -> None:
    book, terms = read({"topologySpreadConstraints": [even(labelSelector=selector)]})
    spread = terms.hard_spread[0]
    assert (spread.counted is spread.matcher) == counts
    assert (spread.counted is book.nobody) != counts


@pytest.mark.parametrize(
    ("spec", "varies"),
    [
        (affinity("podAffinity", **{REQUIRED: [near(matchLabelKeys=["v"])]}), True),
        (affinity("podAntiAffinity", **{REQUIRED: [near(mismatchLabelKeys=["v"])]}), True),
        (
            affinity(
                "podAffinity",
                **{PREFERRED: [{"weight": 1, "podAffinityTerm": near(matchLabelKeys=["v"])}]},
            ),
            True,
        ),
        ({"topologySpreadConstraints": [even(matchLabelKeys=["v"])]}, True),
        ({"topologySpreadConstraints": [even()]}, False),
    ],
)
def test_terms_that_quote_labels_are_read_for_each_class(spec: Any, varies: bool) -> None:
    book = book_of(*(pod(f"p{i}", spec=spec, labels={"v": str(i)}) for i in range(2)))
    shape, tasks = book.snapshot.shapes[0], book.snapshot.tasks
    assert book.varies(shape.id) == varies
    one, two = (book.of(shape, int(tasks.label_class[row])) for row in range(2))
    assert (one is not two) == varies
    assert book.of(shape, int(tasks.label_class[0])) is one
    assert one is not None
    assert not one.varies


@pytest.mark.parametrize(
    ("keys", "labels", "wanted"),
    [
        ({"matchLabelKeys": ["v"]}, {"v": "1"}, [("v", "In", ("1",))]),
        ({"mismatchLabelKeys": ["v"]}, {"v": "1"}, [("v", "NotIn", ("1",))]),
        ({"matchLabelKeys": ["v"]}, {}, []),
        (
            {"matchLabelKeys": ["v"], "mismatchLabelKeys": ["w"]},
            {"v": "1", "w": "2"},
            [("v", "In", ("1",)), ("w", "NotIn", ("2",))],
        ),
        ({"matchLabelKeys": ["v"], "labelSelector": None}, {"v": "1"}, None),
    ],
)
def test_quoted_labels_become_conditions(keys: Any, labels: Any, wanted: Any) -> None:
    term = {key: value for key, value in near(**keys).items() if value is not None}
    _, terms = read(affinity("podAffinity", **{REQUIRED: [term]}), labels=labels)
    selector = terms.required[0].matcher.selector
    if wanted is None:
        assert selector is None
        return
    assert selector.match_labels == {"app": "web"}
    found = [(one.key, one.operator, one.values) for one in selector.match_expressions]
    assert found == wanted


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def container(name: str, *ports: Any, **more: Any) -> Any:
        return {"name": name, "image": "i", "ports": list(ports), **more}

    _, terms = read(
        {
            "containers": [
                container("a", {"containerPort": 1, "hostPort": 10}, {"containerPort": 2}),
                container("b", {"containerPort": 3, "hostPort": 1, "protocol": "UDP"}),
            ],
            "initContainers": [
                container("c", {"containerPort": 4, "hostPort": 12}),
                container(
                    "d",
                    {"containerPort": 5, "hostPort": 13, "hostIP": "10.0.0.1"},
                    restartPolicy="Always",
                ),
            ],
        }
    )
    assert terms.ports == ((ANY_IP, "TCP", 10), (ANY_IP, "UDP", 1), ("10.0.0.1", "TCP", 13))


def test_shapes_that_come_later_are_read_with_the_next_session() -> None:
    ingest = Ingest(Snapshot())
    speaks = affinity("podAntiAffinity", **{REQUIRED: [near()]})
    ingest.load([from_manifest(pod("a")), from_manifest(pod("b", spec=speaks))])
    book = TermBook(ingest.snapshot)
    book.start()
    assert book.speaking == [1]
    ingest.load([from_manifest(pod("c", cpu=1, spec=speaks)), from_manifest(pod("d", cpu=1))])
    book.start()
    assert book.speaking == [1, 2]
    shapes = ingest.snapshot.shapes
    assert [book.of(shape, 0) is None for shape in shapes] == [True, False, False, True]
