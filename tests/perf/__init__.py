"""Speed of the suite's own parts against what a user would use instead."""
