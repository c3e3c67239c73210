"""A made-up study of the name "sweeps": some settings of some of its sweeps."""

from __future__ import annotations

from dataclasses import replace

from made_up_papers import variant
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_study

from benchmark.study import Block, Study, Variant

SAMPLERS = {  # by option: the sampler, and what it differs in from the plain recipe
    "": ("m_per_class", {"samples_per_class": 4}, ()),
    "p8": ("m_per_class", {"samples_per_class": 8}, ("params",)),
    "hard": ("category_pairs", {"samples_per_class": 4}, ("name", "params")),
    "random": ("m_per_class", {"samples_per_class": 4}, ("params",)),
}


def sweep_study(seeds: tuple[int, ...] = (0, 1)) -> Study:
    """Return FastAP's bins and batch sizes, both samplings, and SmoothAP's images of a class."""

    def block(losses: list[Variant], sizes: tuple[int, ...], option: str = "") -> Block:
        name, params, changed = SAMPLERS[option]
        made = made_up_block(
            tuple(losses),
            sizes,
            seeds,
            name=option or "plain",
            setting=f"test_resnet~{option}" if option else "test_resnet",
            recipe=made_up_recipe("test_resnet", 128, name, **params),
        )
        sampler = {"name": name, "params": params}
        overrides = {"sampler": {key: sampler[key] for key in changed}} if changed else {}
        return replace(made, overrides=overrides)

    bins = [variant(f"fast_ap_bins_{count}", "fast_ap", bins=count) for count in (5, 20)]
    blocks = (
        block([*map(variant, ("smooth_ap", "fast_ap")), *bins], (128,)),
        block([variant("fast_ap")], (32, 64)),
        block([variant("smooth_ap")], (128,), "p8"),
        block([variant("fast_ap")], (64,), "hard"),
        block([variant("fast_ap")], (64,), "random"),
    )
    return made_up_study(name="sweeps", blocks=blocks, seeds=seeds)
