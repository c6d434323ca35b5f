"""The schemas of Volcano's custom resources: defaults, unknown fields, and checks."""
