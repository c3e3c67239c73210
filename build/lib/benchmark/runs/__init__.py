"""Run folders: specifications, status, collection into the long table, tracking."""
