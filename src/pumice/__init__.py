"""Pumice: a batch scheduler for Kubernetes with Volcano's behaviour, decided on NumPy columns."""

__version__ = "0.1.0"
