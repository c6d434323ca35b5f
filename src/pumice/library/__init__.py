"""Pumice as a library: what ``import pumice`` offers, for notebooks and programs.

The names that are promised stand in ``pumice/__init__.pyi``; use them from ``pumice`` itself.
"""
