"""Write the numbers of the fields of Kubernetes' kinds, by which protobuf names them.

``python -m tools.protobuf_fields API APIMACHINERY`` reads the sources of the Go modules
``k8s.io/api`` and ``k8s.io/apimachinery`` and writes ``src/pumice/apiserver/protobuf_fields.txt``:
a line for each struct, ``number:name=type``.  Types: ``s`` text, ``i`` number, ``b`` flag, ``y``
bytes, ``q`` quantity, ``x`` number or text, ``t`` time, ``u`` precise time, ``r`` any JSON, ``l``
texts, a name for a struct; ``[`` list, ``{`` map, ``*`` may be empty, ``<`` its fields are those of
the struct around it.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pumice.api.output_files import write_file

ROOT: Final = Path(__file__).resolve().parent.parent
TARGET: Final = ROOT / "src/pumice/apiserver/protobuf_fields.txt"
GROUPS: Final = {
    "core/v1": "v1",
    "apps/v1": "apps/v1",
    "authentication/v1": "authentication.k8s.io/v1",
    "authorization/v1": "authorization.k8s.io/v1",
    "autoscaling/v1": "autoscaling/v1",
    "autoscaling/v2": "autoscaling/v2",
    "batch/v1": "batch/v1",
    "coordination/v1": "coordination.k8s.io/v1",
    "discovery/v1": "discovery.k8s.io/v1",
    "events/v1": "events.k8s.io/v1",
    "networking/v1": "networking.k8s.io/v1",
    "policy/v1": "policy/v1",
    "rbac/v1": "rbac.authorization.k8s.io/v1",
    "resource/v1": "resource.k8s.io/v1",
    "scheduling/v1": "scheduling.k8s.io/v1",
    "storage/v1": "storage.k8s.io/v1",
}
"""Directories of the module and the versions that they hold."""
_META: Final = "meta"
_STRUCT: Final = re.compile(r"^type (\w+) struct \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"^type (\w+) (=? ?[\w\[\].*]+)$", re.MULTILINE)
_FIELD: Final = re.compile(
    r'^\t(\w+\s+)?([\w\[\].*]+)\s+`json:"([^"]*)"[^`]*? protobuf:"\w+,(\d+)[^"]*"', re.MULTILINE
)
_SCALARS: Final = {
    "string": "s",
    "int": "i",
    "int32": "i",
    "int64": "i",
    "bool": "b",
    "[]byte": "y",
    "resource.Quantity": "q",
    "intstr.IntOrString": "x",
    "metav1.Time": "t",
    "metav1.MicroTime": "u",
    "Time": "t",
    "MicroTime": "u",
    "runtime.RawExtension": "r",
    "ExtraValue": "l",
    "authenticationv1.ExtraValue": "l",
    "types.UID": "s",
    "types.NodeName": "s",
}
_LEFT_OUT: Final = frozenset({"ManagedFieldsEntry", "FieldsV1"})
_PACKAGES: Final = {"v1": "v1", "metav1": _META, "corev1": "v1", "apiv1": "v1"}


class Package:
    """The types of one directory of Go sources."""

    def __init__(self, folder: Path, name: str, others: "dict[str, Package]") -> None:
        text = "\n".join(
            path.read_text()
            for path in sorted(folder.glob("*.go"))
            if not path.name.endswith("_test.go") and "generated" not in path.name
        )
        self.name = name
        self._others = others
        self.structs = {found[1]: found[2] for found in _STRUCT.finditer(text)}
        self.named = {found[1]: found[2].strip("= ") for found in _NAMED.finditer(text)}

    def lines(self) -> Iterator[str]:
        """Yield the line of each struct."""
        for name, body in self.structs.items():
            fields = [self._field(found) for found in _FIELD.finditer(body)]
            known = [field for field in fields if field]
            if known and name not in _LEFT_OUT:
                yield f"{self.name}.{name} {' '.join(known)}"

    def _field(self, found: "re.Match[str]") -> str:
        go_type, (json_name, *marks), number = found[2], found[3].split(","), found[4]
        if go_type.endswith(("ManagedFieldsEntry", "TypeMeta", "FieldsV1")):
            return ""
        inline = "<" if "inline" in marks and not json_name else ""
        return f"{number}:{json_name}={inline}{self.type_of(go_type)}"

    def type_of(self, go_type: str) -> str:
        """Return the short form of a type."""
        if go_type in _SCALARS:
            return _SCALARS[go_type]
        for start, mark in (("*", "*"), ("[]", "["), ("map[string]", "{"), ("map[", "{")):
            if go_type.startswith(start):
                rest = go_type[len(start) :]
                return mark + self.type_of(rest.partition("]")[2] if start == "map[" else rest)
        package, dot, name = go_type.rpartition(".")
        if dot:
            return "s" if package == "types" else self._others[_PACKAGES[package]].type_of(name)
        if go_type in self.structs:
            return f"{self.name}.{go_type}"
        return self.type_of(self.named[go_type])


def main(arguments: Sequence[str]) -> int:
    """Write the table."""
    api, machinery = map(Path, arguments)
    packages: dict[str, Package] = {}
    packages[_META] = Package(machinery / "pkg/apis/meta/v1", _META, packages)
    for folder, name in GROUPS.items():
        packages[name] = Package(api / folder, name, packages)
    lines = [line for package in packages.values() for line in package.lines()]
    write_file(TARGET, "\n".join(sorted(lines)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
