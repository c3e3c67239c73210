"""What the trials of a loss vary, and the settings they draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmark.core.cells import Setting
from benchmark.core.options import schema_of
from benchmark.core.recipe import OptimizerConfig, SamplerConfig
from benchmark.core.search import sobol, value_at
from benchmark.study.model import Block, Variant

TRIAL = "trial"  # "trial00" is the published setting, "trial01" the first drawn


@dataclass(frozen=True)
class Knob:
    """One option that trials vary: its section, name, JSON Schema and published value."""

    section: str
    name: str
    schema: Mapping[str, Any]
    published: Any


def knobs(block: Block, loss: Variant, schema: Mapping[str, Any]) -> list[Knob]:
    """Return what the trials of ``loss`` (hyperparameters ``schema``) vary under a block's recipe.

    These are all options with a range, but for the hyperparameters that the study itself sets, and
    for the head's multiplier where a frozen backbone leaves one rate.
    """
    from benchmark.input.samplers import SAMPLERS

    recipe = block.recipe_of(loss.name)
    sampler = schema_of(SAMPLERS[recipe.sampler.name].target.Config)
    given = {name: part.get("default") for name, part in sampler["properties"].items()}
    sections = {
        "optimizer": (schema_of(OptimizerConfig), asdict(recipe.optimizer)),
        "sampler": (sampler, {**given, **recipe.sampler.params}),
        "losses": (schema, loss.params),
    }
    return [
        Knob(section, name, part, values[name])
        for section, (options, values) in sections.items()
        for name, part in options["properties"].items()
        if "search" in part
        and not (section == "losses" and name in loss.own)
        and not (name == "head_lr_multiplier" and recipe.model.freeze_backbone)
    ]


def trial_blocks(block: Block, loss: Variant, found: list[Knob], trials: int) -> list[Block]:
    """Return the block of the published setting of one loss, and one for each trial."""
    points = sobol(loss.label, len(found), trials)
    drawn: list[dict[str, Any]] = [{}]
    for point in points:
        override: dict[str, Any] = {}
        for knob, share in zip(found, point, strict=True):
            section = override.setdefault(knob.section, {})
            section[knob.name] = value_at(knob.schema, share, knob.published)
        drawn.append(override)
    return [_with(block, loss, number, override) for number, override in enumerate(drawn)]


def trial_of(setting: Setting) -> int:
    """Return the number of the trial that a setting is."""
    return int(setting.options[-1].removeprefix(TRIAL))


def _with(block: Block, loss: Variant, number: int, drawn: Mapping[str, Any]) -> Block:
    recipe = block.recipe
    params = {**recipe.sampler.params, **drawn.get("sampler", {})}
    recipe = replace(
        recipe,
        optimizer=replace(recipe.optimizer, **drawn.get("optimizer", {})),
        sampler=SamplerConfig(name=recipe.sampler.name, params=params),
    )
    own = drawn.get("losses", {})
    variant = replace(loss, params={**loss.params, **own}, recipe={**loss.recipe, **own})
    setting = block.setting
    return replace(
        block,
        setting=Setting(setting.backbone, (*setting.options, f"{TRIAL}{number:02d}")),
        losses=(variant,),
        recipe=recipe,
        overrides=_override(block, loss, drawn),
    )


def _override(block: Block, loss: Variant, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the partial recipe that a study file would lay over the block's for this setting."""
    override = dict(drawn)
    if "sampler" in drawn:
        name = block.recipe.sampler.name
        override["sampler"] = {"name": name, "params": drawn["sampler"]}
    if "losses" in drawn:
        override["losses"] = {loss.name: drawn["losses"]}
    return override
