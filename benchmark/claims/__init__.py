"""What papers claim, tested on our runs, and what more runs would decide."""
