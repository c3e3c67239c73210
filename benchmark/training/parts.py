"""Builds everything a run needs from its specification; all of it reproducible from the seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import (
    EvaluationConfig,
    MemoryConfig,
    OptimizerConfig,
    ScheduleConfig,
    TrainingConfig,
    check_memory,
    memory_problem,
)
from benchmark.core.records import RunSpec
from benchmark.core.seeding import derive
from benchmark.datasets import load_dataset
from benchmark.datasets.base import Dataset
from benchmark.input.base import Input
from benchmark.input.create import create_input
from benchmark.input.samplers import Sampler, create_sampler
from benchmark.losses import LOSSES, create_loss
from benchmark.models import EmbeddingModel, create_model
from benchmark.training.evaluate import Evaluator
from benchmark.training.stages import check_micro_batch


@dataclass(frozen=True)
class Parts:
    """The components of one run; labels (N,) are those of the training images, 0 to C - 1."""

    spec: RunSpec
    device: torch.device
    dataset: Dataset
    labels: torch.Tensor
    sampler: Sampler
    train_input: Input
    model: EmbeddingModel
    loss: nn.Module
    evaluator: Evaluator
    optimizer: OptimizerConfig
    schedule: ScheduleConfig
    training: TrainingConfig
    memory: MemoryConfig
    evaluation: EvaluationConfig


def build_parts(spec: RunSpec, device: torch.device) -> Parts:
    """Returns the parts of ``spec``; raises ConfigError or DataError with what to change."""
    recipe = spec.recipe
    problem = memory_problem(
        recipe, spec.loss.name, LOSSES[spec.loss.name].facts["accepts_references"]
    )
    found = check_memory(recipe) + ([problem] if problem else [])
    if found:
        raise ConfigError(spec.run_id, found)
    dataset = load_dataset(spec.dataset.name, spec.dataset.params)
    train = dataset.train
    labels = torch.unique(torch.from_numpy(train.labels), return_inverse=True)[1]
    sampler = create_sampler(
        recipe.sampler.name,
        recipe.sampler.params,
        labels=train.labels,
        categories=train.categories,
        batch_size=spec.batch_size,
        seed=spec.seed,
    )
    model_config, input_config = recipe.model, recipe.input
    model = create_model(model_config, spec.seed).to(device, memory_format=torch.channels_last)
    training = recipe.training
    check_micro_batch(model, training.micro_batch, spec.batch_size)
    loss = create_loss(
        spec.loss.name,
        embedding_dim=model.embedding_dim,
        num_classes=int(labels.max()) + 1,
        seed=derive(spec.seed, "proxies"),
        **spec.loss.params,
    ).to(device)
    evaluation = recipe.evaluation
    return Parts(
        spec=spec,
        device=device,
        dataset=dataset,
        labels=labels,
        sampler=sampler,
        train_input=create_input(train, input_config, model_config.channels),
        model=model,
        loss=loss,
        evaluator=Evaluator(
            dataset, input_config, evaluation, model_config.channels, model.embedding_dim
        ),
        optimizer=recipe.optimizer,
        schedule=recipe.schedule,
        training=training,
        memory=recipe.memory,
        evaluation=evaluation,
    )
