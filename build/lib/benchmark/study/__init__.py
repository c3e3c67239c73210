"""Studies: ``load_study(path_or_name)`` returns a valid Study or raises all its problems."""

from benchmark.core.records import DatasetChoice
from benchmark.study.load import find_study, load_study, study_names
from benchmark.study.model import Block, Resources, Study, Variant

__all__ = [
    "Block",
    "DatasetChoice",
    "Resources",
    "Study",
    "Variant",
    "find_study",
    "load_study",
    "study_names",
]
