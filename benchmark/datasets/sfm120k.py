"""retrieval-SfM-120k: photographs of landmarks, clustered by 3D reconstruction.

Radenovic et al., PAMI 2019; from http://cmp.felk.cvut.cz/cnnimageretrieval/. Clusters are classes,
all of them for training; retrieval is evaluated on the landmark sets that ``landmarks`` names. An
image is named by 32 hexadecimal digits and lies in three folders made of its last six, the last
two first.
"""

from typing import ClassVar

import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.index import index_rows
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.matlab import read_matlab, texts, whole_numbers
from benchmark.datasets.landmark_training import LandmarkTrainingLoader

CLUSTERS = "retrieval-SfM-120k-imagenames-clusterids.mat"


@DATASETS.register("sfm120k", display="SfM-120k")
class Sfm120k(LandmarkTrainingLoader):
    """Landmarks clustered by 3D reconstruction, evaluated on revisited Oxford and Paris."""

    name = "sfm120k"
    archives = (Archive("ims.tar.gz", ("ims/",)), Archive(CLUSTERS, (CLUSTERS,)))
    expected: ClassVar = {"train": {"images": 117369}}  # of the usual release; no paper states it
    sources: ClassVar = {"train": CLUSTERS}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the training images, in the order of the file."""
        with findings.reading(CLUSTERS):
            cids, cluster = read_matlab(findings.root / CLUSTERS, "cids", "cluster")
            names, clusters = texts(cids), whole_numbers(cluster)
        if clusters.shape != (len(names),) or not names:
            findings.fail(
                f"{CLUSTERS} has {len(names)} cids and clusters {clusters.shape}; "
                "needed: one each per image"
            )
        malformed = [repr(name)[:80] for name in names if len(name) < 6 or not name.isalnum()]
        findings.add_all(
            f"malformed names in {CLUSTERS}",
            malformed,
            "each must be six or more letters and digits",
        )
        findings.stop()
        paths = [f"ims/{name[-2:]}/{name[-4:-2]}/{name[-6:-4]}/{name}" for name in names]
        return index_rows(pd.Series(paths, dtype=object), clusters.astype(str), "", "train", "")
