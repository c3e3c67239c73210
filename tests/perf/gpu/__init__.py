"""The check of a GPU: ``python -m benchmark bench gpu --out DIR``.

It needs torch, timm, numpy, pandas and pillow: what a machine with a GPU and no network may have.
"""
