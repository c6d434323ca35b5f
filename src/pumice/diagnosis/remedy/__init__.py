"""What would get a waiting job started: changes for each cause, each proved by running it."""
