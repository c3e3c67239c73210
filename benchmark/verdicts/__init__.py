"""Our runs against printed numbers and frozen runs."""
