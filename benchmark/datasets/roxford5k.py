"""Revisited Oxford: buildings of Oxford.

Philbin et al., CVPR 2007; judged anew by Radenovic et al., CVPR 2018.

Images from https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/, all in ``jpg/``; ground truth from
http://cmp.felk.cvut.cz/revisitop/. For evaluation only.
"""

from __future__ import annotations

from typing import ClassVar

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.landmarks import LandmarkLoader


@DATASETS.register("roxford5k", display="ROxford")
class ROxford5k(LandmarkLoader):
    """Revisited Oxford: buildings of Oxford, for evaluation only."""

    name = "roxford5k"
    archives = (
        Archive("oxbuild_images.tgz", ("jpg/",)),
        Archive("gnd_roxford5k.pkl", ("gnd_roxford5k.pkl",)),
    )
    # SoftBinAP section 4.1
    expected: ClassVar = {"query": {"images": 70}, "gallery": {"images": 4993}}
    sources: ClassVar = dict.fromkeys(expected, "gnd_roxford5k.pkl")
