"""Compare any implementation of a ranking loss with the formula of that loss.

``formulas`` has the right answers, ``suite`` the batches and the checks; ``itself`` has the checks
of a loss without a formula, ``step_of_parts`` those of a step that trains a batch in parts.
``python -m benchmark conform`` runs them in a process of its own (``bounded``).
"""
