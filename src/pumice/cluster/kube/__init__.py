"""A real Kubernetes cluster: where it is, how it is asked, what is kept of it in memory.

``KubeCluster`` in ``pumice.cluster.kube.cluster`` is what other packages use.
"""
