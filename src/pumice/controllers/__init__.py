"""Controllers: each brings one kind of object closer to what it says, level by level."""
