"""A dump tells what is known without what pods keep to themselves."""

import json
import stat

from pumice.cli.serve.dump import write_dump
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import node, pod, queue


def test_a_dump_holds_objects_without_environments(tmp_path):
    cluster = EmbeddedCluster()
    manifest = pod("a", cpu=1)
    manifest["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hush"}]
    for one in (manifest, node("n"), queue("q")):
        cluster.create(one)
    path = write_dump(
        cluster, ["Pod", "Node", "Queue.scheduling.volcano.sh"], str(tmp_path), "cache"
    )
    text = path.read_text()
    objects = json.loads(text)["objects"]
    assert objects["Pod"][0]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert objects["Queue.scheduling.volcano.sh"][0]["metadata"]["name"] == "q"
    assert "hush" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
