"""Make the components of a run from its specification and its seed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from benchmark.core import provenance
from benchmark.core.code_version import code_version
from benchmark.core.errors import ConfigError, Problem
from benchmark.core.recipe import Recipe, SamplerConfig
from benchmark.core.records import RunSpec
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS, load_dataset
from benchmark.datasets.base import Dataset, ImageSet
from benchmark.input.samplers import SAMPLERS, Sampler, create_sampler
from benchmark.input.tensors import Input, create_input
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import Loss
from benchmark.models import EmbeddingModel, create_model
from benchmark.training.evaluate import Evaluator
from benchmark.training.features import FrozenFeatures, given_features


@dataclass(frozen=True)
class Components:
    """The components of one run; labels (N,) of the training images are 0 to C - 1.

    A hierarchical loss gets labels (N, 2), class and category, if the dataset has categories.
    """

    spec: RunSpec
    device: torch.device
    dataset: Dataset
    labels: torch.Tensor
    sampler: Sampler
    train_input: Input
    model: EmbeddingModel
    loss: Loss
    evaluator: Evaluator

    @property
    def recipe(self) -> Recipe:
        return self.spec.recipe

    def identity(self) -> dict[str, str]:
        """Return what decides the numbers of this run."""
        return {
            "spec_digest": self.spec.digest,
            "code_version": version_of_run(self.spec),
            "dataset_fingerprint": self.dataset.fingerprint,
            "platform": provenance.platform_label(),
            "kernels": provenance.kernels(),
        }


def version_of_run(spec: RunSpec) -> str:
    """Return the code version of a run, with the plugins of its components."""
    used = DATASETS[spec.dataset.name], SAMPLERS[spec.recipe.sampler.name], LOSSES[spec.loss.name]
    return code_version(*(entry.target.__module__ for entry in used))


def build_components(
    spec: RunSpec, device: torch.device, report: Callable[[str], None] = print
) -> Components:
    """Return the components of ``spec``; raise ConfigError or DataError with the advice to follow.

    ``report`` gets the progress of the features of a frozen backbone, and may raise to stop.
    """
    recipe = spec.recipe
    dataset = load_dataset(spec.dataset.name, spec.dataset.params)
    train = dataset.train
    labels = torch.unique(torch.from_numpy(train.labels), return_inverse=True)[1]
    if not len(train) and recipe.training.epochs:
        message = f"'{spec.dataset.name}' has no training images; give 0"
        raise ConfigError(spec.run_id, [Problem(message, "training.epochs")])
    chosen = recipe.sampler if len(train) else SamplerConfig(name="random")
    sampler = create_sampler(
        chosen.name,
        chosen.params,
        labels=train.labels,
        categories=train.categories,
        batch_size=spec.batch_size,
        seed=spec.seed_of("order"),
    )
    if recipe.model.freeze_backbone and sampler.pooled:
        message = (
            f"'{recipe.sampler.name}' embeds images anew each epoch, which a frozen backbone "
            "does once (model.freeze_backbone); give another sampler"
        )
        raise ConfigError(spec.run_id, [Problem(message, "sampler.name")])
    width = None if train.features is None else train.features.shape[1]
    model = create_model(recipe.model, spec.seed_of("weights"), width)
    if not recipe.model.freeze_backbone:
        model.fit_positions(recipe.input.image_size)
    # torch's annotations of ``to`` leave the memory format out
    layout: dict[str, Any] = {"device": device, "memory_format": torch.channels_last}
    model.to(**layout)
    check_micro_batch(spec, model)
    loss = create_loss(
        spec.loss.name,
        embedding_dim=model.embedding_dim,
        num_classes=len(torch.unique(labels)),
        seed=derive(spec.seed_of("weights"), "proxies"),
        **spec.loss.params,
    ).to(device)
    if getattr(loss, "hierarchical", False) and train.categories is not None:
        labels = torch.stack([labels, torch.from_numpy(train.categories)], dim=1)
    make_input: Callable[[ImageSet], Input]
    if width is not None:
        make_input = given_features
    elif recipe.model.freeze_backbone:
        make_input = FrozenFeatures(
            model.take_backbone(), dataset.images_fingerprint, recipe, device, report
        )
    else:
        channels = recipe.model.channels
        make_input = partial(create_input, config=recipe.input, channels=channels, device=device)
    return Components(
        spec=spec,
        device=device,
        dataset=dataset,
        labels=labels,
        sampler=sampler,
        train_input=make_input(train),
        model=model,
        loss=loss,
        evaluator=Evaluator(dataset, make_input, recipe.evaluation, model.embedding_dim),
    )


def check_micro_batch(spec: RunSpec, model: torch.nn.Module) -> None:
    """Raise ConfigError if micro-batches change the gradient of the network.

    Batch norms that train would use the statistics of a micro-batch, not of the batch.
    """
    training = spec.recipe.training
    size = training.micro_batch
    norms = training_norms(model)
    if norms and size is not None and size < spec.batch_size and not training.staged:
        problem = (
            f"micro_batch  {size} splits batches of {spec.batch_size}, and {norms} batch norms "
            "of this network use the statistics of what they are given; set "
            "model.freeze_batch_norm: true, or micro_batch: null"
        )
        raise ConfigError("recipe section training", [problem])


def training_norms(model: torch.nn.Module) -> int:
    """Return the number of batch norms that use the statistics of their batch."""
    return sum(isinstance(module, _BatchNorm) and module.training for module in model.modules())
