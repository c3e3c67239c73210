"""What papers print and state: numbers, tables, figures, claims and recipes; no runs."""
