"""The webhook server: AdmissionReviews over HTTPS, its certificate and its registration."""
