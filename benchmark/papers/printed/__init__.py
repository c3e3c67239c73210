"""What a study's runs say about papers' tables and figures: computed once, then only read."""
