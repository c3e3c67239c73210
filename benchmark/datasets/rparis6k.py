"""Revisited Paris: landmarks of Paris.

Philbin et al., CVPR 2008; judged anew by Radenovic et al., CVPR 2018.
Images from https://www.robots.ox.ac.uk/~vgg/data/parisbuildings/, all in ``jpg/``; ground truth
from http://cmp.felk.cvut.cz/revisitop/. For evaluation only.
"""

from __future__ import annotations

from typing import ClassVar

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.landmarks import LandmarkLoader


@DATASETS.register("rparis6k", display="RParis")
class RParis6k(LandmarkLoader):
    """Revisited Paris: landmarks of Paris, for evaluation only."""

    name = "rparis6k"
    archives = (
        Archive("paris_1.tgz", ("jpg/",), flat=True),
        Archive("paris_2.tgz", ("jpg/",), flat=True),
        Archive("gnd_rparis6k.pkl", ("gnd_rparis6k.pkl",)),
    )
    # SoftBinAP section 4.1
    expected: ClassVar = {"query": {"images": 70}, "gallery": {"images": 6322}}
    sources: ClassVar = dict.fromkeys(expected, "gnd_rparis6k.pkl")
