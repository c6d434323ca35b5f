"""Deployment of Pumice on a cluster; ``python -m deploy.build`` writes the manifests."""
