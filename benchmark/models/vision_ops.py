"""Makes torchvision importable where its compiled operators do not load.

timm imports torchvision, whose wheels are built for CUDA: beside a CPU-only torch the library of
operators is not loaded and the import fails on two of their schemas. No model here calls them, so
declaring the schemas is enough; where the library loads, nothing is touched.
"""

import importlib.util
from pathlib import Path

import torch

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []


def prepare_torchvision() -> bool:
    """Declare ``torchvision::nms`` and ``qnms`` if they are missing; returns whether it had to."""
    if _declared or _operators_load():
        return False
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + _SCHEMA)
    _declared.append(library)  # the schemas vanish with the object
    return True


def _operators_load() -> bool:
    if hasattr(torch.ops.torchvision, "nms"):
        return True
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    for path in sorted(Path(spec.origin).parent.glob("_C*")):
        try:
            torch.ops.load_library(str(path))
        except OSError:
            continue
    return hasattr(torch.ops.torchvision, "nms")
