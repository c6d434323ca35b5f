"""The fields of every kind, declared once: types, bounds, defaults and descriptions.

Decoding, the checks and defaults of admission, the CRDs and vcctl's output are made from it.
"""
