"""What the cluster says: typed objects and quantities, without behaviour; imports errors only."""
