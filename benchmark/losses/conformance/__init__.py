"""Compare any implementation of a ranking loss with the formula of that loss.

``formulas`` has the formulas, ``cases`` the batches, ``checks`` what is examined; ``python -m
benchmark conform`` runs them.
"""
