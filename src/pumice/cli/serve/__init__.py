"""The command group `pumice serve`: Pumice as a process on a real cluster."""
