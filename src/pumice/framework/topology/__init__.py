"""Jobs in the network: domains, the parts of a job, their places, and the search for a place."""
