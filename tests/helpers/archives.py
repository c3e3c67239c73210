"""Images, and small datasets in the exact layouts of the published archives.

``MAKERS[name](root)`` writes the unpacked dataset into ``root``, ``BROUGHT`` those that nobody can
simply download. Loaders accept them with ``allow_counts: true`` only.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

SIZE = (48, 36)  # width and height of the images
CHANNELS = {"L": (), "RGB": (3,), "RGBA": (4,)}


def write_jpeg(path: Path, number: int, size: tuple[int, int] = SIZE) -> None:
    """Writes a picture of two colours, chosen by ``number``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", size, (37 * number % 256, 91 * number % 256, 151 * number % 256))
    picture.paste((255, 255, 255), (0, 0, size[0] // 2, size[1] // 2))
    picture.save(path, quality=90)


def save(path: Path, seed: int = 0, mode: str = "RGB", size=(24, 20), **options: object) -> None:
    """Write a picture of noise, (width, height), and its folder; ``options`` go to the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (size[1], size[0], *CHANNELS[mode])
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    Image.fromarray(pixels).save(path, **options)


def write_lines(path: Path, lines: list[str]) -> None:
    """Writes a text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_cub(root: Path) -> None:
    """Four bird species, two on each side of the split, three images each."""
    classes = {
        99: "099.Ovenbird",
        100: "100.Brown_Pelican",
        101: "101.White_Pelican",
        200: "200.Common_Yellowthroat",
    }
    images = [
        (place, label, f"{name}/{name.split('.')[1]}_{1 + place % 3:04d}_{1 + place % 3}.jpg")
        for place, (label, name) in enumerate(each for each in classes.items() for _ in range(3))
    ]
    for place, _, path in images:
        write_jpeg(root / "images" / path, place)
    write_lines(root / "classes.txt", [f"{number} {name}" for number, name in classes.items()])
    write_lines(root / "images.txt", [f"{place + 1} {path}" for place, _, path in images])
    labels = [f"{place + 1} {label}" for place, label, _ in images]
    write_lines(root / "image_class_labels.txt", labels)
    splits = [f"{place + 1} {(place + 1) % 2}" for place, _, _ in images]
    write_lines(root / "train_test_split.txt", splits)


def make_cars196(root: Path) -> None:
    """Four models of cars, two on each side of the split, three images each, as MATLAB writes
    them."""
    numbers = [1, 98, 99, 196] * 3
    images = car_annotations("relative_im_path", "car_ims/{:06d}.jpg", numbers)
    for place, path in enumerate(images["relative_im_path"][0], start=1):
        write_jpeg(root / path, place)
    savemat(root / "cars_annos.mat", {"annotations": images, "class_names": car_names()})


def halved_cars196(root: Path) -> None:
    """The same cars in the other layout: a development kit, and a split that nobody asks for."""
    (root / "devkit").mkdir(parents=True)
    for folder, file, numbers in (
        ("cars_train", "devkit/cars_train_annos.mat", [1, 98, 99, 196, 1, 98]),
        ("cars_test", "cars_test_annos_withlabels.mat", [99, 196, 1, 98, 99, 196]),
    ):
        images = car_annotations("fname", "{:05d}.jpg", numbers)
        for place, name in enumerate(images["fname"][0], start=1):
            write_jpeg(root / folder / name, len(folder) + place)
        savemat(root / file, {"annotations": images})
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": car_names()})


def car_annotations(field: str, name: str, numbers: list[int]) -> np.ndarray:
    """Return MATLAB's array of structs of the images of these classes."""
    fields = (field, "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "test")
    images = np.empty((1, len(numbers)), dtype=[(each, object) for each in fields])
    box = [np.array([[side]], np.uint16) for side in (3, 2, 40, 30)]
    for place, number in enumerate(numbers, start=1):
        row = (name.format(place), *box, np.array([[number]], np.uint8), np.uint8(place % 2))
        images[0, place - 1] = row
    return images


def car_names() -> np.ndarray:
    """Return MATLAB's cells of the names of all classes."""
    names = np.empty((1, 196), dtype=object)
    names[0] = [f"Make {number} Coupe 2012" for number in range(1, 197)]
    return names


def make_sop(root: Path) -> None:
    """Two categories; four products to train on, four to test on, two images each."""
    image = 0
    for split, first in (("train", 1), ("test", 11319)):
        rows = ["image_id class_id super_class_id path"]
        for product in range(4):
            category = ("bicycle", "chair")[product // 2]
            for view in range(2):
                image += 1
                path = f"{category}_final/{111085122871 + first + product}_{view}.JPG"
                write_jpeg(root / path, image)
                rows.append(f"{image} {first + product} {product // 2 + 1} {path}")
        write_lines(root / f"Ebay_{split}.txt", rows)


def make_inaturalist(root: Path) -> None:
    """Eight species of two kinds, half to train on, two images each."""
    categories = []
    lists: dict[str, list[str]] = {"train": [], "test": []}
    for species in range(8):
        kingdom = ("Aves", "Plantae")[species % 2]
        category = 100 + species
        named = {"id": category, "name": f"species {category}", "genus": "Genus"}
        categories.append({**named, "supercategory": kingdom})
        for view in range(2):
            path = f"train_val2018/{kingdom}/{category}/{category * 10 + view:032x}.jpg"
            write_jpeg(root / path, 2 * species + view)
            lists["train" if species < 4 else "test"].append(path)
    for split, paths in lists.items():
        write_lines(root / "Inat_dataset_splits" / f"Inaturalist_{split}_set1.txt", paths)
    (root / "train2018.json").write_text(json.dumps({"categories": categories}), encoding="utf-8")


def make_inshop(root: Path) -> None:
    """Two garment categories; four items to train on; four others with one query and two gallery
    images each."""
    rows = []
    for item in range(1, 9):
        category = ("WOMEN/Dresses", "MEN/Denim")[item % 2]
        for view, status in enumerate(
            ("train", "train") if item <= 4 else ("query", "gallery", "gallery"), start=1
        ):
            path = f"img/{category}/id_{item:08d}/{view:02d}_{view}_front.jpg"
            write_jpeg(root / path, 3 * item + view)
            rows.append(f"{path:<70} id_{item:08d} {status}")
    write_lines(
        root / "list_eval_partition.txt",
        [str(len(rows)), "image_name  item_id  evaluation_status", *rows],
    )


def make_vehicleid(root: Path) -> None:
    """Four vehicles to train on, half with a model; subsets of 2, 3 and 4 test vehicles, three
    images each."""
    image = 0
    lists: dict[str, list[str]] = {}
    for subset, vehicles in (
        ("train_list", range(1000, 1004)),
        ("test_list_800", range(2000, 2002)),
        ("test_list_1600", range(3000, 3003)),
        ("test_list_2400", range(4000, 4004)),
    ):
        lists[subset] = []
        for vehicle in vehicles:
            for _ in range(3):
                image += 1
                write_jpeg(root / "image" / f"{image:07d}.jpg", image)
                lists[subset].append(f"{image:07d} {vehicle}")
    for subset, rows in lists.items():
        write_lines(root / "train_test_split" / f"{subset}.txt", rows)
    write_lines(root / "attribute" / "model_attr.txt", ["1000 7", "1002 12", "4001 7"])


def make_sfm120k(root: Path) -> None:
    """Three clusters of three images, named by 32 hexadecimal digits."""
    cids = [
        f"{number * 7919:026x}{number:02x}{number + 16:02x}{number + 32:02x}" for number in range(9)
    ]
    for number, cid in enumerate(cids):
        path = root / "ims" / cid[-2:] / cid[-4:-2] / cid[-6:-4] / cid
        write_jpeg(path.with_suffix(".jpg"), number)
        path.with_suffix(".jpg").rename(path)  # real names have no ending
    cells = np.empty((1, len(cids)), dtype=object)
    cells[0] = cids
    clusters = np.array([[1 + number // 3 for number in range(len(cids))]], dtype=np.float64)
    savemat(
        root / "retrieval-SfM-120k-imagenames-clusterids.mat", {"cids": cells, "cluster": clusters}
    )


def landmark_truth() -> list[dict]:
    """Returns the ground truth of three queries over eight images; the second has nothing easy."""
    return [
        {"bbx": [4.0, 2.0, 40.0, 30.0], "easy": [0, 1], "hard": [2], "junk": [3]},
        {"bbx": [8.4, 6.6, 47.0, 35.0], "easy": [], "hard": [7], "junk": [0]},
        {"bbx": [0.0, 0.0, 24.0, 18.0], "easy": [4], "hard": [5, 6], "junk": []},
    ]


def make_landmarks(root: Path, name: str, prefix: str) -> None:
    """Writes a revisited landmark set of three queries and eight images."""
    images = [f"{prefix}_{number:06d}" for number in range(8)]
    queries = [f"{prefix}_query_{number:06d}" for number in range(3)]
    for number, image in enumerate(images + queries):
        write_jpeg(root / "jpg" / f"{image}.jpg", number)
    with (root / f"gnd_{name}.pkl").open("wb") as file:
        pickle.dump(
            {"imlist": images, "qimlist": queries, "gnd": landmark_truth()}, file, protocol=2
        )


make_roxford5k = partial(make_landmarks, name="roxford5k", prefix="oxford")
make_rparis6k = partial(make_landmarks, name="rparis6k", prefix="paris_defense")


def make_landmarks_clean(root: Path) -> None:
    """Three landmarks of three images; the list names image and landmark."""
    rows = []
    for landmark in range(3):
        for view in range(3):
            path = f"full/{landmark}/{landmark * 10 + view}.jpg"
            write_jpeg(root / path, 5 * landmark + view)
            rows.append(f"{path} {landmark}")
    write_lines(root / "annotations" / "annotation_clean_train.txt", rows)


def make_revisitop1m(root: Path) -> None:
    """Five distractors in two folders; the list names them below ``jpg/``."""
    paths = [f"{number % 2:03d}/{number * 7919:032x}.jpg" for number in range(5)]
    for number, path in enumerate(paths):
        write_jpeg(root / "jpg" / path, 40 + number)
    write_lines(root / "revisitop1m.txt", paths)


def make_vggface2(root: Path) -> None:
    """Four people to train on and two to test on, three faces each, with their boxes."""
    for split, people in (("train", range(2, 6)), ("test", (1, 9))):
        rows = ["NAME_ID,X,Y,W,H"]
        for person in people:
            for view in range(3):
                name = f"n{person:06d}/{view + 1:04d}_01"
                write_jpeg(root / split / f"{name}.jpg", 7 * person + view)
                rows.append(f'"{name}",10,8,20,16')
        write_lines(root / "bb_landmark" / f"loose_bb_{split}.csv", rows)


def make_ijbc(root: Path) -> None:
    """Three people: one with five still images, one with three and two videos, one with four.

    An image shows two of them; the videos have three and two frames.
    """
    stills = {1: ["1", "2", "3", "4", "5"], 2: ["5", "6", "7"], 3: ["8", "9", "10", "11"]}
    rows = ["SUBJECT_ID,FILENAME,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT,SIGHTING_ID"]
    for person, images in stills.items():
        rows += [f"{person},img/{image}.png,{4 * person},6,20,16,1" for image in images]
    frames = [
        f"frames/{video}_{number}.png"
        for video, count in ((20, 3), (21, 2))
        for number in range(count)
    ]
    rows += [f"2,{frame},12,6,20,16,2" for frame in frames]
    for number, name in enumerate(dict.fromkeys(row.split(",")[1] for row in rows[1:])):
        write_jpeg(root / "images" / name, number)
    write_lines(root / "protocols" / "ijbc_metadata.csv", rows)


BROUGHT: dict[str, Callable[[Path], None]] = {
    "ijbc": make_ijbc,
    "landmarks_clean": make_landmarks_clean,
    "revisitop1m": make_revisitop1m,
    "vggface2": make_vggface2,
}
MAKERS: dict[str, Callable[[Path], None]] = {
    "cub": make_cub,
    "cars196": make_cars196,
    "sop": make_sop,
    "inaturalist": make_inaturalist,
    "inshop": make_inshop,
    "vehicleid": make_vehicleid,
    "sfm120k": make_sfm120k,
    "roxford5k": make_roxford5k,
    "rparis6k": make_rparis6k,
}
