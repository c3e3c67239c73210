"""The report of a study: from its collected runs to tables, figures, galleries and one HTML page.

``build.py`` is where to begin: it runs once through frames in memory (``inputs.py``), makes every
table and figure that is registered below ``tables`` and ``figures``, and puts them on the page.
"""
