"""Objects as Go's types see them: types of fields, and messages of refusals."""
