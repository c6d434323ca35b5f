"""Objects of the cluster: typed, with quantities, without behaviour; imports errors only."""
