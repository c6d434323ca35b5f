"""Jobs in the network: domains, the parts of a job, where they lie, and the search for a place."""
