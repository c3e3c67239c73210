"""The machinery of the ranking losses, apart from the losses themselves."""
