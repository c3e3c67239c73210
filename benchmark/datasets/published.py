"""Published datasets of things, each in classes: what their lists say, row by row.

The archives are for research. The sources of all counts stand beside them.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from benchmark.core.documents import whole_number
from benchmark.core.options import option, options
from benchmark.core.paths import is_text, leaves_root
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import (
    Archive,
    Dataset,
    DatasetLoader,
    Findings,
    ImageSet,
    Protocol,
    fingerprint_of,
)
from benchmark.datasets.index import IndexConfig, IndexedLoader, RootConfig, index_rows
from benchmark.datasets.io.images import IMAGE_SUFFIXES, Opener, is_ignored
from benchmark.datasets.io.lists import (
    read_matlab,
    read_rows,
    read_table,
    texts,
    whole_numbers,
)
from benchmark.metrics.protocols import random_gallery

IJBC_TABLE = "protocols/ijbc_metadata.csv"


@DATASETS.register(
    "cub", display="CUB-200-2011", pages=["https://www.vision.caltech.edu/datasets/cub_200_2011/"]
)
class Cub(IndexedLoader):
    """Bird species: classes 1 to 100 to train, 101 to 200 to test.

    CUB-200-2011 (Wah et al., Caltech CNS-TR-2011-001, 2011). ``train_test_split.txt``, made for
    classification, is not used (ROADMAP, section 4).
    """

    name = "cub"
    largest_side = 500
    images = "images.txt"
    labels = "image_class_labels.txt"
    classes = "classes.txt"
    provided = ("images/", images, labels, classes)
    archives = (Archive("CUB_200_2011.tgz", provided, "97eceeb196236b17998738112f37df78"),)
    # ROADMAP section 4: 11,788 images of 200 classes; the halves follow from the class numbers
    expected: ClassVar = {
        "train": {"images": 5864, "classes": 100},
        "test": {"images": 5924, "classes": 100},
    }
    source = images

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the table joined from the three lists, in the order of images.txt."""
        images = read_rows(findings, self.images, ["image", "path"], once="image")
        rows = read_rows(findings, self.labels, ["image", "number"], once="image", whole="number")
        labels = rows.set_index("image")["number"]
        rows = read_rows(findings, self.classes, ["number", "label"], once="number", whole="number")
        classes = rows.set_index("number")["label"]
        findings.stop()
        listed = set(images["image"])
        labelled = set(labels.index)
        nameless = set(labels) - set(classes.index)
        for what, offenders, file in (
            (f"images of {self.images} without a class", listed - labelled, self.labels),
            (f"images of {self.labels} without a path", labelled - listed, self.images),
            (f"classes of {self.labels} without a name", nameless, self.classes),
        ):
            findings.add_all("missing", what, sorted(offenders), f"give each one in {file}")
        findings.stop()
        numbers = images["image"].map(labels)
        names = numbers.map(classes)
        apart = images["path"][names != [path.partition("/")[0] for path in images["path"]]]
        advice = f"check {self.labels} and {self.classes}"
        what = "images in the folder of another class"
        findings.add_all("other_class", what, apart, advice)
        roles = np.where(numbers <= 100, "train", "test")
        return index_rows("images/" + images["path"], names, "", roles, "test")


@DATASETS.register("cars196", display="Cars196", pages=["http://ai.stanford.edu/~jkrause/car196/"])
class Cars196(IndexedLoader):
    """Models of cars: classes 1 to 98 to train, 99 to 196 to test.

    Krause et al., 3dRR 2013 (no longer served; copies carry the same digests), in one of two
    layouts: all images in ``car_ims/``, or the halves of a split made for classification beside
    ``devkit/``. Retrieval papers do not use that split (Oh Song et al., CVPR 2016, section 7).
    """

    name = "cars196"
    annotations = "cars_annos.mat"
    names = "devkit/cars_meta.mat"
    train = "devkit/cars_train_annos.mat"
    test = "cars_test_annos_withlabels.mat"
    archives = (
        Archive("car_ims.tgz", ("car_ims/",), "d5c8f0aa497503f355e17dc7886c3f14"),
        Archive(annotations, (annotations,), "b407c6086d669747186bd1d764ff9dbc"),
    )
    other_archives = (
        Archive("cars_train.tgz", ("cars_train/",), "065e5b463ae28d29e77c1b4b166cfe61"),
        Archive("cars_test.tgz", ("cars_test/",), "4ce7ebf6a94d07f1952d94dd34c4d501"),
        Archive("car_devkit.tgz", (train, names), "c3b158d763b6e2245038c8ad08e45376"),
        Archive(test, (test,), "b0a2b23655a3edd16d84508592a98d10"),
    )
    # 16,185 images; the halves as in Oh Song et al., section 7
    expected: ClassVar = {
        "train": {"images": 8054, "classes": 98},
        "test": {"images": 8131, "classes": 98},
    }
    source = "its annotations"

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the table of the annotations, in their order."""
        file = self.annotations
        lists = [(file, "relative_im_path", "")]  # file, field of the names, folder of the images
        if self.layout(findings.root) == self.other_archives:
            file = self.names
            lists = [(self.train, "fname", "cars_train/"), (self.test, "fname", "cars_test/")]
        with findings.reading(file):
            names = texts(*read_matlab(findings.root / file, "class_names"))
        paths: list[str] = []
        numbers: list[int] = []
        for file, field, folder in lists:
            with findings.reading(file):
                (images,) = read_matlab(findings.root / file, "annotations")
                listed = [f"{folder}{path}" for path in images[field]]
                classes = whole_numbers(images["class"]).tolist()
            # a path must be directly in a folder of images
            folders = ("car_ims", "cars_train", "cars_test")
            wrong = []
            for path in listed:
                parent, _, name = path.rpartition("/")
                if leaves_root(path) or parent not in folders or not name:
                    wrong.append(path)
            what = f"paths in {file} outside its folder of images"
            findings.add_all("path_outside", what, wrong, "get it again")
            nameless = sorted({number for number in classes if not 1 <= number <= len(names)})
            advice = "class_names must have each one"
            findings.add_all("missing", "classes without a name", nameless, advice, file)
            paths += listed
            numbers += classes
        findings.stop()
        # the number keeps classes apart whose names are alike, and puts them in their order
        labels = [f"{number:03d} {names[number - 1]}" for number in numbers]
        roles = np.where(np.array(numbers) <= 98, "train", "test")
        return index_rows(paths, labels, "", roles, "test")


@DATASETS.register(
    "sop", display="SOP", pages=["https://cvgl.stanford.edu/projects/lifted_struct/"]
)
class Sop(IndexedLoader):
    """Products for sale, in 12 categories.

    Stanford Online Products (Oh Song et al., CVPR 2016), with the split in its two lists. The
    category of a product is the name of its folder without ``_final``.
    """

    name = "sop"
    lists: ClassVar = {"train": "Ebay_train.txt", "test": "Ebay_test.txt"}
    archives = (Archive("Stanford_Online_Products.zip", (*lists.values(), "bicycle_final/")),)
    # FastAP table 4
    category_names = frozenset(
        (
            "bicycle", "cabinet", "chair", "coffee_maker", "fan", "kettle", "lamp", "mug", "sofa",
            "stapler", "table", "toaster",
        )
    )  # fmt: skip
    # FastAP section 5; categories: FastAP table 4
    expected: ClassVar = {
        "train": {"images": 59551, "classes": 11318, "categories": 12},
        "test": {"images": 60502, "classes": 11316, "categories": 12},
    }

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list."""
        fields = ("image_id", "class_id", "super_class_id", "path")
        rows = read_rows(findings, file, fields, header=" ".join(fields))
        category = [path.partition("/")[0].removesuffix("_final") for path in rows["path"]]
        return index_rows(rows["path"], rows["class_id"], category, role, protocol)


@DATASETS.register(
    "inaturalist",
    display="iNaturalist-2018",
    pages=["https://github.com/visipedia/inat_comp/tree/master/2018"],
)
class INaturalist(IndexedLoader):
    """Species of plants and animals.

    iNaturalist 2018 (Van Horn et al., CVPR 2018), training and validation images together. Split
    files from the authors of Smooth-AP (Brown et al., ECCV 2020, section 5.1). A path reads
    ``train_val2018/<kingdom>/<species number>/<image>.jpg``: category and class are its last
    folders.
    """

    name = "inaturalist"
    largest_side = 800
    lists: ClassVar = {
        "train": "Inat_dataset_splits/Inaturalist_train_set1.txt",
        "test": "Inat_dataset_splits/Inaturalist_test_set1.txt",
    }
    archives = (
        Archive("train_val2018.tar.gz", ("train_val2018/",)),
        Archive("Inaturalist_train_set1.txt", (lists["train"],)),
        Archive("Inaturalist_test_set1.txt", (lists["test"],)),
    )
    # Smooth-AP table 1 and section 5.1
    expected: ClassVar = {
        "train": {"images": 325846, "classes": 5690},
        "test": {"images": 136093, "classes": 2452},
    }

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list."""
        paths = read_rows(findings, file, ["path"])["path"]
        # there are few folders: each is split once
        index, folders = pd.factorize(paths.map(lambda path: path.rpartition("/")[0]))
        names = [["", "", *folder.split("/")] for folder in folders]
        deep = np.array([len(name) >= 5 for name in names], dtype=bool)[index]
        form = "each must read <folder>/<category>/<class>/<image>"
        findings.add_all("malformed_line", "malformed lines", paths[~deep], form, file)
        ends = np.array([name[-2:] for name in names], dtype=object).reshape(-1, 2)[index][deep]
        return index_rows(paths[deep], ends[:, 1], ends[:, 0], role, protocol)


@DATASETS.register(
    "inshop",
    display="In-Shop",
    pages=["https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html"],
)
class InShop(IndexedLoader):
    """Garments of an online shop: queries against a gallery.

    In-Shop Clothes Retrieval of DeepFashion (Liu et al., CVPR 2016). The category of a garment is
    two folders of its path, as in ``WOMEN/Dresses``.
    """

    name = "inshop"
    partition = "list_eval_partition.txt"
    archives = (Archive("img.zip", ("img/",)), Archive(partition, (partition,)))
    # FastAP table 4
    category_names = frozenset(
        (
            "MEN/Denim", "MEN/Jackets_Vests", "MEN/Pants", "MEN/Shirts_Polos", "MEN/Shorts",
            "MEN/Suiting", "MEN/Sweaters", "MEN/Sweatshirts_Hoodies", "MEN/Tees_Tanks",
            "WOMEN/Blouses_Shirts", "WOMEN/Cardigans", "WOMEN/Denim", "WOMEN/Dresses",
            "WOMEN/Graphic_Tees", "WOMEN/Jackets_Coats", "WOMEN/Leggings", "WOMEN/Pants",
            "WOMEN/Rompers_Jumpsuits", "WOMEN/Shorts", "WOMEN/Skirts", "WOMEN/Sweaters",
            "WOMEN/Sweatshirts_Hoodies", "WOMEN/Tees_Tanks",
        )
    )  # fmt: skip
    # FastAP section 5; categories: FastAP table 4
    expected: ClassVar = {
        "train": {"images": 25882, "classes": 3997},
        "test": {"images": 14218, "classes": 3985},
        "test gallery": {"images": 12612, "classes": 3985},
        "all": {"images": 52712, "classes": 7982, "categories": 23},
    }
    roles = ("train", "query", "gallery")
    source = partition

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the rows of the partition list, in its order."""
        fields = ("path", "item", "role")
        header = "image_name item_id evaluation_status"
        rows = read_rows(findings, self.partition, fields, header=header, skip=1)
        if len(rows):
            with open(findings.root / self.partition, encoding="utf-8-sig") as file:
                stated = file.readline().strip()
            if stated != str(len(rows)):
                message = (
                    f"{self.partition}: line 1 is {stated[:40]!r}, but {len(rows):,} rows can be "
                    "read; unpack it again"
                )
                findings.add("other_count", message, self.partition)
        names = rows["path"].map(lambda path: path.split("/"))
        valid = (names.map(len) >= 4) & rows["role"].isin(self.roles)
        wrong = [repr(" ".join(row)[:100]) for row in rows[~valid].itertuples(index=False)]
        roles = ", ".join(self.roles)
        form = f"each must read img/<group>/<kind>/.../<image> <item> <one of {roles}>"
        findings.add_all("malformed_line", "malformed lines", wrong, form, self.partition)
        rows = rows[valid]
        names = names[valid]
        category = names.map(lambda name: "/".join(name[1:3]))
        # an item in two categories belongs to the first one, so that every class has one category
        category = rows["item"].map(category.groupby(rows["item"]).first())
        return index_rows(rows["path"], rows["item"], category, rows["role"], "test")

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts of each part, and of all three together."""
        kinds = {"images": "path", "classes": "label", "categories": "category"}
        together = {kind: int(table[column].nunique()) for kind, column in kinds.items()}
        return {**dataset.counts, "all": together}


@DATASETS.register(
    "vehicleid", display="VehicleID", pages=["https://www.pkuml.org/resources/pku-vehicleid.html"]
)
class VehicleId(IndexedLoader):
    """Vehicles seen by traffic cameras, in three test sizes.

    PKU VehicleID (Liu et al., CVPR 2016), on request. The category of a vehicle is its model where
    ``attribute/model_attr.txt`` gives one (roughly half of the training vehicles), else
    ``unknown``, which is numbered after all models.
    """

    @options
    class Config(IndexConfig):
        """The options of indexed datasets, and the protocol."""

        protocol: Literal["all_others", "random_gallery"] = option(
            "all_others",
            help="all_others: each test image queries the others of its subset (Smooth-AP); "
            "random_gallery: one image of each vehicle is the gallery of the rest, drawn 10 times "
            "with fixed seeds (the dataset's own)",
        )

    name = "vehicleid"
    lists: ClassVar = {
        "train": "train_test_split/train_list.txt",
        "small": "train_test_split/test_list_800.txt",
        "medium": "train_test_split/test_list_1600.txt",
        "large": "train_test_split/test_list_2400.txt",
    }
    source = "attribute/model_attr.txt"
    archives = (Archive("VehicleID_V1.0.zip", ("image/", *lists.values(), source)),)
    # Smooth-AP section 5.1 and FastAP section 5; models: FastAP table 4
    expected: ClassVar = {
        "train": {"images": 110178, "classes": 13134},
        "small": {"images": 7332, "classes": 800},
        "medium": {"images": 12995, "classes": 1600},
        "large": {"images": 20038, "classes": 2400},
        "models": {"categories": 250},
    }
    # As others report the lists (fast-reid, fastreid/data/datasets/vehicleid.py), which the codes
    # of both papers read (Smooth_AP, src/datasets.py:116; FastAP, matlab/+imdb/vid.m:33)
    distributed: ClassVar = {
        "train": {"images": 113346, "classes": 13164},
        "small": {"images": 6493, "classes": 800},
        "medium": {"images": 13377, "classes": 1600},
        "large": {"images": 19777, "classes": 2400},
        "models": {"categories": 250},
    }

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the rows of the four lists, with the models as categories."""
        table = super().read(findings)
        rows = read_rows(findings, self.source, ["vehicle", "model"], once="vehicle")
        models = dict(zip(rows["vehicle"], rows["model"], strict=True))
        self.models = rows["model"].nunique()  # used or not
        return table.assign(category=[models.get(label, "unknown") for label in table["label"]])

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list, without categories."""
        rows = read_rows(findings, file, ["path", "vehicle"])
        return index_rows("image/" + rows["path"] + ".jpg", rows["vehicle"], "", role, protocol)

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts, and the number of models in the attribute file, used or not."""
        return {**dataset.counts, "models": {"categories": self.models}}

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol of a subset: each image queries the others, or random galleries."""
        if self.config.protocol == "all_others":
            return super().protocol(name, sets)
        labels = sets["test"].labels
        seeds = [derive(0, "vehicleid gallery", name, number) for number in range(10)]
        return Protocol(sets["test"], repeats=tuple(random_gallery(labels, seed) for seed in seeds))


@DATASETS.register(
    "gpr1200", display="GPR1200", pages=["https://github.com/Visual-Computing/GPR1200"]
)
class Gpr1200(IndexedLoader):
    """Images of many kinds, for evaluation only.

    Ten images of each of 1,200 classes of six kinds (Schall et al., MMM 2022), all in ``images/``,
    named ``<class>_<original name>``. As in the authors' code (eval/utils.py) the query stays in
    the ranking, where it finds itself first.
    """

    name = "gpr1200"
    trains = False
    metrics = ("map",)
    roles = ("test",)
    archives = (Archive("GPR1200.zip", ("images/",)),)
    expected: ClassVar = {"test": {"images": 12_000, "classes": 1200, "categories": 6}}
    source = "images/"
    # where the classes come from, 200 of each, in the order of their numbers (eval/GPR1200.py)
    origins = ("landmarks", "inaturalist", "sketches", "instre", "products", "faces")

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the table of the images in the folder, class after class."""
        tables = []
        wrong = []
        for name in os.listdir(findings.root / "images"):
            text, _, rest = name.partition("_")
            known = rest and whole_number(text) in range(1200) and is_text(name)
            if known and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES:
                tables.append((int(text), name))
            elif not is_ignored(name):
                wrong.append(name)
        advice = "expected <class>_<name> with a class of 0 to 1199; move others away"
        what = "files in images/ that are no image of a class"
        findings.add_all("other_file", what, sorted(wrong), advice)
        tables.sort()
        labels = [f"{number:04d}" for number, _ in tables]
        origins = [self.origins[number // 200] for number, _ in tables]
        return index_rows([f"images/{name}" for _, name in tables], labels, origins, "test", "test")

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol in which the gallery holds the queries as well."""
        return Protocol(sets["test"], sets["test"])


@options
class FaceConfig(RootConfig):
    """The options of sets of faces."""

    margin: float = option(
        0.3,  # VGGFace2, section 4.1
        at_least=0.0,
        at_most=100.0,
        help="share by which the sides of a face's box grow before the image is cropped to it",
    )
    aligned: bool = option(
        False,
        help="read crops that were aligned beforehand, as they are: the same paths below aligned/",
    )


class FaceLoader(IndexedLoader):
    """Loads images of faces, whose table has the left, top, width and height of each, in pixels."""

    Config: ClassVar[type] = FaceConfig

    @property
    def above(self) -> str:
        """The folder that the paths of images are below."""
        return "aligned/" if self.config.aligned else ""

    def opener(self, rows: pd.DataFrame) -> Opener:
        """Return the opener of the images, cropped to the faces unless they are aligned."""
        root = Path(self.config.root)
        paths = rows["path"].tolist()
        if self.config.aligned:
            return Opener(root, paths)
        boxes = rows[list(self.further)].to_numpy(dtype=np.float64)
        grown = boxes[:, 2:] * self.config.margin / 2
        ends = boxes[:, :2] - grown, boxes[:, :2] + boxes[:, 2:] + grown
        return Opener(root, paths, np.concatenate(ends, axis=1))

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table, the boxes and their margin."""
        rows = table.sort_values("role", kind="stable")
        boxes = rows[list(self.further)].to_numpy(dtype=np.float64)
        return fingerprint_of(super().fingerprint(table), boxes, repr(self.config.margin))


@DATASETS.register("vggface2", display="VGGFace2")
class VggFace2(FaceLoader):
    """Faces to train on, evaluated on the faces of other people, and on IJB-C.

    VGGFace2 (Cao et al., FG 2018): 9,131 people, in two splits of different people. No longer
    distributed: bring your own. Each split is a folder with a folder for each person, and a table
    of the boxes around the faces, which lists its images.
    """

    @options
    class Config(FaceConfig):
        """The options of sets of faces, and the evaluation."""

        evaluated_on: list[Literal["ijbc"]] = option(
            ["ijbc"], help="further sets of faces to evaluate on, in folders beside the root"
        )

    name = "vggface2"
    lists: ClassVar = {
        "train": "bb_landmark/loose_bb_train.csv",
        "test": "bb_landmark/loose_bb_test.csv",
    }
    archives = (
        Archive("vggface2_train.tar.gz", ("train/",)),
        Archive("vggface2_test.tar.gz", ("test/",)),
        Archive("bb_landmark.tar.gz", tuple(lists.values())),
    )
    # Smooth-AP table 1, whose 3.31 million training images are those of both splits
    expected: ClassVar = {"train": {"classes": 8631}, "test": {"images": 169396, "classes": 500}}
    further = ("X", "Y", "W", "H")

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one split: its names are ``<person>/<image>``."""
        rows = read_table(findings, file, ["NAME_ID"], self.further)
        names = rows["NAME_ID"]
        wrong = [repr(name)[:80] for name in names if name.count("/") != 1 or name.startswith("/")]
        form = "each must be <person>/<image>"
        findings.add_all("malformed_name", "malformed names", wrong, form, file)
        person = [name.partition("/")[0] for name in names]
        index = index_rows(f"{self.above}{role}/" + names + ".jpg", person, "", role, protocol)
        return index.join(rows[list(self.further)])

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything wrong, IJB-C included."""
        this, loaded = self.load_with_others()
        protocols = dict(this.protocols)
        counts = dict(this.counts)
        for dataset in loaded.values():
            protocols |= dataset.protocols
            counts |= {
                split: number for split, number in dataset.counts.items() if split != "train"
            }
        return replace(this, protocols=protocols, counts=counts)

    def others(self) -> dict[str, DatasetLoader]:
        """Return the loaders of the other sets of faces."""
        config = self.config
        return self.beside(config.evaluated_on, margin=config.margin, aligned=config.aligned)


@DATASETS.register("ijbc", display="IJB-C")
class IjbC(FaceLoader):
    """Faces of still images and videos, for evaluation only.

    3,531 people (Maze et al., ICB 2018); given out on request: bring your own. As Smooth-AP section
    5.1 has it, a video is one instance, the mean of the vectors of its frames, and people with
    fewer than five instances are left out.
    """

    name = "ijbc"
    trains = False
    roles = ("test",)
    unique = ("path", "label")  # one image may show several people
    archives = (Archive("IJB-C.tar.gz", ("images/img/", "images/frames/", IJBC_TABLE)),)
    # Smooth-AP table 1, which counts images and frames, not instances
    expected: ClassVar = {"ijbc": {"images": 148824, "classes": 3531}}
    # 31,334 still images and 117,542 frames of 11,779 videos (Maze et al., table 1)
    distributed: ClassVar = {"ijbc": {"images": 148876, "classes": 3531}}
    source = IJBC_TABLE
    further = ("FACE_X", "FACE_Y", "FACE_WIDTH", "FACE_HEIGHT")

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the images of people with five instances or more, in the order of the table."""
        rows = read_table(findings, IJBC_TABLE, ("SUBJECT_ID", "FILENAME"), self.further)
        people = rows["SUBJECT_ID"]
        names = rows["FILENAME"]
        # a frame (frames/<video>_<number>.<suffix>) belongs to its video, a still image to itself
        sources = [n.rpartition("_")[0] if n.startswith("frames/") else n for n in names]
        instances = people + "/" + pd.Series(sources, rows.index, dtype=object)
        taken = instances.groupby(people).transform("nunique") >= 5
        self.instances = pd.factorize(instances[taken])[0].astype(np.int64)  # by first use
        paths = f"{self.above}images/" + names[taken]
        index = index_rows(paths, people[taken], "", "test", self.name)
        return index.join(rows[list(self.further)])

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol in which the images of a video are one instance."""
        return Protocol(sets["test"], instances=self.instances)

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts of the images, and of the instances."""
        return {**dataset.counts, "ijbc instances": {"images": int(self.instances.max()) + 1}}
