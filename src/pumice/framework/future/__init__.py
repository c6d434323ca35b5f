"""The cluster ahead of now: when running pods end, and where and when a waiting job fits then."""
