"""The files that runs wait for: datasets, and weights in the caches of timm and torchvision."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from benchmark.core.files import check_regular
from benchmark.core.recipe import GOOGLENET, ModelConfig
from benchmark.core.records import RunSpec
from benchmark.datasets import loader_of
from benchmark.datasets.index import IndexedLoader

HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def needs_of(spec: RunSpec) -> dict[str, bool]:
    """Return the files that a run needs, as text with their folder, and whether they exist."""
    files = weights_of(spec.recipe.model)
    dataset = loader_of(spec.dataset.name, spec.dataset.params)
    if not dataset.archives:
        config = vars(dataset.config)
        for key, is_there in (("root", os.path.isdir), ("file", os.path.isfile)):
            if place := config.get(key):
                files[f"dataset {spec.dataset.name} ({place})"] = is_there(place)
        return files
    loaders: dict[str, Any] = {spec.dataset.name: dataset}
    if isinstance(dataset, IndexedLoader):
        loaders |= dataset.others()
    for name, loader in loaders.items():
        root = Path(loader.config.root)
        packed = getattr(loader.config, "packed", None)
        missing = [path for archive in loader.layout(root) for path in archive.missing(root)]
        # a packed copy replaces the folders of images
        files[f"dataset {name} ({root})"] = all(packed and path.endswith("/") for path in missing)
    return files


def weights_of(model: ModelConfig) -> dict[str, bool]:
    """Return the pretrained weights of a network in the same way."""
    if (path := model.checkpoint) is not None:
        package = path.removeprefix("package:")
        if package == path:
            check_regular(path)
            name = f"weights {path}"
            exists = os.path.isfile(path)
        else:
            name = f"weights of the package {package}"
            exists = importlib.util.find_spec(package) is not None
        if not exists:
            name += " (to be brought)"
        return {name: exists}
    if not model.pretrained:
        return {}
    from huggingface_hub import constants, try_to_load_from_cache

    if model.backbone.partition(".")[0] == GOOGLENET:
        caches = os.environ.get("XDG_CACHE_HOME", "~/.cache")
        home = Path(os.environ.get("TORCH_HOME", f"{caches}/torch")).expanduser()
        exists = any((home / "hub" / "checkpoints").glob(f"{GOOGLENET}-*.pth"))
        return {f"weights {model.backbone} (TORCH_HOME={home})": exists}
    # the name there of all weights but a few tags of other people
    name = f"timm/{model.backbone}"
    exists = any(isinstance(try_to_load_from_cache(name, file), str) for file in HUB_FILES)
    home = Path(constants.HF_HUB_CACHE).parent
    return {f"weights {model.backbone} (HF_HOME={home})": exists}
