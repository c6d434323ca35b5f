"""What the verbs of `pumice job|queue|pod|jobflow|jobtemplate` share, and the alias `vcctl`."""
