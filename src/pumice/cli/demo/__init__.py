"""`pumice demo`: a short story on an embedded cluster, told from what was really decided."""
