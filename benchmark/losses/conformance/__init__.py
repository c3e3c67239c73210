"""Compare any implementation of a ranking loss with the formula of that loss.

``formulas`` has the right answers, ``suite`` the batches and the checks; ``python -m benchmark
conform`` runs them.
"""
