"""Learning-rate schedules as pure functions of progress: resuming needs no state of them."""

import math

from benchmark.core.recipe import ScheduleConfig

ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = 1e-4


def learning_rate_factor(config: ScheduleConfig, epoch: int, share: float, epochs: int) -> float:
    """Return the multiple of the optimiser's rate at ``share`` (0 to 1) of epoch ``epoch``, from 0.

    ``step`` multiplies by gamma after each milestone; ``linear`` falls to 0 at the end;
    ``one_cycle`` rises along a cosine from 1/25 to 1 at ``peak_at`` of the training and falls along
    a cosine to 1e-4.
    """
    done = epoch + share
    warmup = min(1.0, done / config.warmup_epochs) if config.warmup_epochs else 1.0
    if config.name == "step":
        shape = config.gamma ** sum(epoch >= milestone for milestone in config.milestones)
    elif config.name == "linear":
        shape = 1.0 - done / epochs
    elif config.name == "one_cycle":
        shape = _one_cycle(done / epochs, config.peak_at)
    else:
        shape = 1.0
    return warmup * shape


def _one_cycle(progress: float, peak_at: float) -> float:
    if progress < peak_at:
        return _cosine(ONE_CYCLE_START, 1.0, progress / peak_at)
    return _cosine(1.0, ONE_CYCLE_END, (progress - peak_at) / (1.0 - peak_at))


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * share))
