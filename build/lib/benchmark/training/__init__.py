"""Training and evaluation of one run: from spec.json to result.json."""
