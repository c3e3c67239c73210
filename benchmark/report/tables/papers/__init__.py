"""The papers' own tables, drawn up from data: an arrangement per paper, one way to render them all.

``<paper>.yaml`` says how the rows and columns of each table follow from the columns of the published results;
``footnotes.yaml`` says where a paper disagrees with itself or with another; ``names.yaml`` holds display names.
"""
