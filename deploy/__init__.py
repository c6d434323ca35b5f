"""What it takes to run Pumice on a cluster; ``python -m deploy.build`` writes the manifests."""
