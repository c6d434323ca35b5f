"""One page about simulations: charts drawn by a little script, nothing fetched."""
