"""Pumice as processes on a real cluster: options, wiring, endpoints, reload, election, loops."""
