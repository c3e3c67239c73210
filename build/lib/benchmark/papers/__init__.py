"""What the papers print and claim, and how our runs compare with it."""
