"""The retrieval gallery: chosen queries under two losses, with what each ranks first."""

from benchmark.report.gallery.write import write_gallery

__all__ = ["write_gallery"]
