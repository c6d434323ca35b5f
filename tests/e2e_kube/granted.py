"""The rights that the deployment grants to each service account, as its manifest states them."""

from tests.e2e_kube.install import Manifest, manifests


def granted_rights() -> dict[str, set[str]]:
    """Return by account ("namespace:name") what it may do, as ``Request.right`` names it."""
    found = manifests()
    rules = {
        (each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", "")): each
        for each in found
        if each["kind"] in ("Role", "ClusterRole")
    }
    rights: dict[str, set[str]] = {}
    for binding in found:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        role = binding["roleRef"]
        place = binding["metadata"].get("namespace", "") if role["kind"] == "Role" else ""
        allowed = _rights(rules[role["kind"], role["name"], place])
        for account in binding["subjects"]:
            rights.setdefault(f"{account['namespace']}:{account['name']}", set()).update(allowed)
    return rights


def _rights(role: Manifest) -> set[str]:
    return {
        right(verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right(verb: str, group: str, resource: str) -> str:
    """Name a right: ``patch podgroups.scheduling.volcano.sh``."""
    return f"{verb} {resource}.{group}" if group else f"{verb} {resource}"
