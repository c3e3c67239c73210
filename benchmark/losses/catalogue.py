"""Facts and hyperparameters of all losses by name; imports torch only where a plugin does."""

from benchmark.losses import LOSSES
from benchmark.losses.configs import DECLARED, LossFacts

__all__ = ["LossFacts", "load_catalogue"]


def load_catalogue() -> dict[str, LossFacts]:
    """Return the facts of every loss, those of plugins as well, by its name, sorted."""
    plugins = {
        entry.name: LossFacts(entry.target.Config, entry.display, **entry.facts)
        for entry in LOSSES.of_plugins()
    }
    return dict(sorted((DECLARED | plugins).items()))
