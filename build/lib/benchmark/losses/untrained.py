"""No loss: the row of a network that is evaluated as it starts."""

from benchmark.core.errors import RunError
from benchmark.core.recipe import UNTRAINED
from benchmark.losses import LOSSES
from benchmark.losses.base import Loss


@LOSSES.register(UNTRAINED, display="Not trained", paper="none", kind="none")
class Untrained(Loss):
    """Stand where a loss stands in a study; its runs have no epochs (``training.epochs: 0``)."""

    def forward(self, *batch, **options):
        raise RunError(f"'{UNTRAINED}' is not a loss to train with; set training.epochs to 0")
