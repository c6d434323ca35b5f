"""Shared by the verbs of `pumice job|queue|pod|jobflow|jobtemplate`, and the alias `vcctl`."""
