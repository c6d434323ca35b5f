"""`pumice jobflow` and `pumice jobtemplate`: jobs that wait for each other."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pumice.api.kinds import JOB_FLOW, JOB_TEMPLATE, Manifest
from pumice.api.shown_text import shown
from pumice.api.wording import counted
from pumice.api.wording import verb as verb_form
from pumice.cli.vcctl.columns import (
    OUTPUTS,
    WRITTEN,
    Column,
    age,
    as_json,
    as_yaml,
    print_objects,
    print_written,
    show,
    without_managed_fields,
)
from pumice.cli.vcctl.documents import parse_manifest, read_kind, read_text, shape, split_documents
from pumice.cli.vcctl.verbs import (
    Call,
    Flag,
    VerbError,
    VerbGroup,
    click_group,
    complaints,
    message_of,
    name_flag,
    namespace_flag,
    verb,
)
from pumice.errors import ClusterError

_API_VERSION = "flow.volcano.sh/v1alpha1"


@dataclass(frozen=True, kw_only=True)
class Filed:
    """One such kind; ``called`` is its name in messages."""

    kind: str
    title: str
    called: str
    help: str
    has_phase: bool = False

    @property
    def _word(self) -> str:
        return self.title.lower()

    def verb_group(self) -> VerbGroup:
        """Make the verbs."""
        named = (name_flag(self.called), namespace_flag(self.called))
        file = Flag("file", "f", f"the path to the YAML file containing the {self.called}")
        everywhere = Flag(
            "all-namespaces",
            "",
            f"list {self._word}s in all namespaces",
            default=False,
            kind="bool",
        )
        listing = (namespace_flag(self.called), *([everywhere] if self.has_phase else []))
        shape_flag = Flag("format", "o", "the format of output", "yaml")
        return VerbGroup(
            self._word,
            f"vcctl command line operation {self._word}",
            self.help,
            (
                verb("create", f"create a {self._word}", self._create, file, outputs=WRITTEN),
                verb(
                    "delete",
                    f"delete a {self._word}",
                    self._delete,
                    *named,
                    file,
                    outputs=WRITTEN,
                ),
                verb("describe", f"describe a {self._word}", self._describe, *named, shape_flag),
                verb("get", f"get a {self._word}", self._get, *named, outputs=OUTPUTS),
                verb("list", f"list {self._word}s", self._list, *listing, outputs=OUTPUTS),
            ),
        )

    def _create(self, call: Call) -> None:
        self._for_each(call, "create", call.cluster.create)

    def _delete(self, call: Call) -> None:
        if call.text("file"):
            self._for_each(call, "delete", lambda item: self._remove(call, item))
            return
        if not call.text("name"):
            raise VerbError(f"{self.called} name must be specified")
        item = call.cluster.get(self.kind, call.text("namespace"), call.text("name"))
        print_written(call, self._remove(call, item), f"Deleted {self.title}: {_place(item)}")

    def _remove(self, call: Call, item: Manifest) -> Manifest:
        metadata = item["metadata"]
        call.cluster.delete(self.kind, metadata["namespace"], metadata.get("name", ""))
        return item

    def _for_each(self, call: Call, verb: str, act: Callable[[Manifest], Manifest]) -> None:
        """Do something with each object of a file, and continue when one is refused."""
        complain, written, failed = complaints(call.echo, call.output), list[Manifest](), 0
        items = self._as_the_original(call) if call.exact else self._read(call)
        for item in items:
            item["metadata"].setdefault("namespace", "default")
            try:
                written.append(act(item))
            except ClusterError as error:
                complain(f"Failed to {verb} {self.title}: {shown(message_of(error))}\n")
                failed += 1
            else:
                if not call.output:
                    call.line(f"{verb.capitalize()}d {self.title}: {_place(item)}")
        if call.output:
            print_objects(call, written, single=len(written) == 1)
        if failed and not call.exact:  # a script must be able to tell
            total = counted(failed + len(written), "object")
            were = verb_form(failed, "was", "were")
            raise VerbError(f"{failed} of {total} in {call.text('file')} {were} refused")

    def _read(self, call: Call) -> list[Manifest]:
        return read_kind(call.text("file"), self.kind, f"flow.{self.title}")

    def _as_the_original(self, call: Call) -> Iterator[Manifest]:
        """Yield the objects of a file; what precedes one that cannot be read is done."""
        for text in split_documents(read_text(call.text("file"))):
            item = parse_manifest(text, f"flow.{self.title}")
            yield item | {"apiVersion": _API_VERSION, "kind": self.title}

    def _get(self, call: Call) -> None:
        if not call.text("name"):
            raise VerbError(f"name is mandatory to get the particular {self.called} details")
        item = call.cluster.get(self.kind, call.text("namespace"), call.text("name"))
        show(call, [item], self._columns(call), gap=4, single=True)

    def _list(self, call: Call) -> None:
        show(call, call.listed(self.kind), self._columns(call), gap=4)

    def _columns(self, call: Call) -> list[Column]:
        now = call.cluster.now()
        columns = [
            Column(title="Name", value=lambda item: item["metadata"]["name"]),
            Column(title="Namespace", value=lambda item: item["metadata"].get("namespace", "")),
            Column(title="Phase", value=_phase),
            Column(
                title="Age", value=lambda item: age(item["metadata"].get("creationTimestamp"), now)
            ),
        ]
        return columns if self.has_phase else columns[:2]

    def _describe(self, call: Call) -> None:
        if call.text("name"):
            items = [call.cluster.get(self.kind, call.text("namespace"), call.text("name"))]
        else:
            items = call.listed(self.kind)
        call.echo("\n\n".join(self._described(call, item) for item in items))

    def _described(self, call: Call, item: Manifest) -> str:
        form = call.text("format")
        if form not in ("json", "yaml"):
            if not call.exact:
                raise VerbError(f"unsupported format: {form}, supported are json and yaml")
            return f"Unsupported format: {form}"
        item = {**item, "metadata": without_managed_fields(item["metadata"])}
        content = shape(item, f"flow.{self.title}")
        return as_json(content) if form == "json" else as_yaml(content)


def _phase(item: Manifest) -> str:
    return str(((item.get("status") or {}).get("state") or {}).get("phase", ""))


def _place(item: Manifest) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata'].get('name', '')}"


JOBTEMPLATE: Final = Filed(
    kind=JOB_TEMPLATE,
    title="JobTemplate",
    called="job template",
    help="Make, show and delete the templates that job flows use.",
).verb_group()
jobtemplate = click_group(JOBTEMPLATE)


JOBFLOW: Final = Filed(
    kind=JOB_FLOW,
    title="JobFlow",
    called="jobflow",
    help="Make, show and delete flows of jobs that wait for each other.",
    has_phase=True,
).verb_group()
jobflow = click_group(JOBFLOW)
