"""ROADMAP: SupAP plus calibration."""

from dataclasses import dataclass, fields

from benchmark.core.errors import ConfigError
from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.calibration import Calibration
from benchmark.losses.composite import Composite
from benchmark.losses.sup_ap import SupAP


@LOSSES.register("roadmap", display="ROADMAP", paper="Ramzi et al., NeurIPS 2021")
class Roadmap(Composite):
    """(1 - lambda) SupAP + lambda calibration (ROADMAP, Eq. 2).

    ``weights`` replaces (1 - lambda, lambda), for example [1, 1] as in the authors' configurations.
    The other hyperparameters are those of the two components.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(SupAP.Config, Calibration.Config):
        lambda_: float = option(
            0.5,
            at_least=0.0,
            at_most=1.0,
            help="share of calibration",
            search={"linear": [0.1, 0.9]},
        )
        weights: list[float] | None = option(
            None, help="weights of SupAP and calibration; null: [1 - lambda_, lambda_]"
        )

    def composition(self):
        weights = self.config.weights
        if weights is None:
            weights = [1.0 - self.config.lambda_, self.config.lambda_]
        if len(weights) != 2:
            problem = f"weights  {weights} (allowed: two numbers, of SupAP and of calibration)"
            raise ConfigError("loss 'roadmap'", [problem])
        values = vars(self.config)
        return [
            (weight, name, {item.name: values[item.name] for item in fields(component.Config)})
            for weight, name, component in zip(
                weights, ("sup_ap", "calibration"), (SupAP, Calibration), strict=True
            )
        ]
