"""A made-up study of the name "sweeps": some settings of some of its sweeps."""

from __future__ import annotations

from made_up_papers import variant
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_study

from benchmark.study import Study
from benchmark.study.model import Block

RECIPE = made_up_recipe("test_resnet", 128)


def sweep_study(seeds: tuple[int, ...] = (0, 1)) -> Study:
    """Returns FastAP's bins and batch sizes, both samplings, and SmoothAP's images of a class."""

    def block(setting: str, losses, sizes=(128,)) -> Block:
        return made_up_block(
            tuple(losses), sizes, seeds, name=setting, setting=setting, recipe=RECIPE
        )

    bins = [variant(f"fast_ap_bins_{count}", "fast_ap", bins=count) for count in (5, 20)]
    blocks = (
        block("test_resnet", [*map(variant, ("smooth_ap", "fast_ap")), *bins]),
        block("test_resnet", [variant("fast_ap")], (32, 64)),
        block("test_resnet~p8", [variant("smooth_ap")]),
        block("test_resnet~hard", [variant("fast_ap")], (64,)),
        block("test_resnet~random", [variant("fast_ap")], (64,)),
    )
    return made_up_study(name="sweeps", blocks=blocks, seeds=seeds)
