"""The retrieval gallery: chosen queries under two losses side by side, with what each found first and how well."""

from benchmark.report.gallery.write import GALLERY, write_gallery

__all__ = ["GALLERY", "write_gallery"]
