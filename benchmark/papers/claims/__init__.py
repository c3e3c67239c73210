"""Claims: sentences of the papers as tests on results; no torch here."""
