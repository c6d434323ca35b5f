"""One page that shows how simulations went: charts drawn by a little script, nothing fetched."""
