"""The papers' own figures, drawn up from data: ``figures.yaml`` says what each shows, four kinds of panel draw it."""
