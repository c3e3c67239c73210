"""Foundations: errors, files, options, records, recipe, seeds, provenance. No torch."""
