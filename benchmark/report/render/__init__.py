"""What a table is, and how it becomes CSV, Markdown, LaTeX and HTML."""
