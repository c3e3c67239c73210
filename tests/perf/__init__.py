"""Speed and memory of the suite's own parts, beside what a user would use instead."""
