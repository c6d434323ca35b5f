"""Events in, columns out: keeps the tables of a snapshot in step with the cluster."""
