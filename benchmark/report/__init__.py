"""What a study's results show: tables, figures, galleries and the page."""
