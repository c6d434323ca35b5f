"""A real Kubernetes cluster: its address, its requests, its objects in memory.

``KubeCluster`` in ``pumice.cluster.kube.cluster`` is what other packages use.
"""
