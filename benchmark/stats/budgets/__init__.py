"""Losses at equal budgets: what trials choose, what a budget buys, and how sure the order is."""
