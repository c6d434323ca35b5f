"""Pumice as a library: the names of ``import pumice``, for notebooks and programs.

The stable names are in ``pumice/__init__.pyi``; use them from ``pumice`` itself.
"""
