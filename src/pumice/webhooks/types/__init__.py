"""Objects as Go's types see them: which field has which type, and how a wrong one is refused."""
