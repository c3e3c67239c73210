"""The verbs of ``python -m benchmark``: one file per area, each with ``register(app)``.

Modules here import nothing heavy at the top: a verb imports what it needs when it is called.
"""
