"""The files that runs wait for: datasets, and weights in the caches of timm and torchvision."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from benchmark.core.recipe import GOOGLENET, ModelConfig
from benchmark.core.records import RunSpec
from benchmark.datasets import loader_of
from benchmark.datasets.index import IndexedLoader

HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def needs_of(spec: RunSpec) -> dict[str, bool]:
    """Return what a run needs from elsewhere, in words with its place, and whether it is there."""
    found = weights_of(spec.recipe.model)
    own = loader_of(spec.dataset.name, spec.dataset.params)
    others: dict[str, Any] = own.others() if isinstance(own, IndexedLoader) else {}
    for name, loader in {spec.dataset.name: own, **others}.items() if own.archives else ():
        root = Path(loader.config.root)
        packed = getattr(loader.config, "packed", None)
        missing = [path for each in loader.layout(root) for path in each.missing(root)]
        there = all(packed and path.endswith("/") for path in missing)
        found[f"dataset {name} ({root})"] = there
    return found


def weights_of(model: ModelConfig) -> dict[str, bool]:
    """Return the weights that a network starts from, likewise; none for fresh ones."""
    if (path := model.checkpoint) is not None:
        package = path.removeprefix("package:")
        there = importlib.util.find_spec(package) if package != path else os.path.isfile(path)
        words = f"weights {path}" if package == path else f"weights of the package {package}"
        return {words if there else f"{words} (to be brought)": bool(there)}
    if not model.pretrained:
        return {}
    from huggingface_hub import constants, try_to_load_from_cache

    if model.backbone.partition(".")[0] == GOOGLENET:
        caches = os.environ.get("XDG_CACHE_HOME", "~/.cache")
        home = Path(os.environ.get("TORCH_HOME", f"{caches}/torch")).expanduser()
        there = any((home / "hub" / "checkpoints").glob(f"{GOOGLENET}-*.pth"))
        return {f"weights {model.backbone} (TORCH_HOME={home})": there}
    # what all but some tags of other people are called there
    found = (try_to_load_from_cache(f"timm/{model.backbone}", file) for file in HUB_FILES)
    home = Path(constants.HF_HUB_CACHE).parent
    return {f"weights {model.backbone} (HF_HOME={home})": any(isinstance(x, str) for x in found)}
