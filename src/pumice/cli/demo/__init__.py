"""`pumice demo`: a short story on an embedded cluster, written from the actual decisions."""
