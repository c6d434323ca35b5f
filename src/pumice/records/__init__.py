"""The record of a cluster: every change that scheduling depends on, and every decision, on disk.

Used by `pumice record`, by schedulers with ``--record`` and by every answer about the past.
"""
