"""The recipe: all settings of a training but the dataset, the loss and the batch size.

Each section is a dataclass that pydantic validates. This module must not import torch.
"""

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from benchmark.core.errors import Problem, failing
from benchmark.core.options import distinct, option, options

Precision = Literal["float32", "tf32", "bfloat16", "float16"]
# The loss of a network that is not trained; it has a row beside the trained networks.
UNTRAINED = "untrained"
MOST_RATIO = 100.0  # of sides, as images may have
MOST_SCALE = 1000.0  # of pixels in [0, 1]; beyond it the network itself, not the loss, overflows
# The backbone of heads on a dataset of features, which has no images.
FEATURES = "features"
# A backbone that timm does not have, and the tags here of torchvision's weights.
GOOGLENET = "googlenet"
GOOGLENET_WEIGHTS = {"tv_in1k": "IMAGENET1K_V1"}


@options
class ModelConfig:
    """Backbone, pooling, head and normalisation of the embedding network."""

    backbone: str = option(
        help="timm model name, with its weight tag when pretrained: resnet50.tv_in1k; 'features': "
        "none, the dataset has what a network made of images"
    )
    pretrained: bool = option(False, help="load the weights of the tag (timm) or of 'checkpoint'")
    checkpoint: str | None = option(
        None, help="path of a state dict to load instead of timm's weights"
    )
    channels: int = option(3, at_least=1, help="input channels")
    pooling: Literal["avg", "max", "gem", "token", "native"] = option(
        "avg",
        help="how a feature map becomes a vector; native: as the network was pretrained, with its "
        "attention pooling and last normalisation where it has them",
    )
    layer_norm: bool = option(False, help="LayerNorm between pooling and head")
    embedding_dim: int | None = option(
        None, at_least=1, at_most=1_000_000, help="width of the linear head; null means no head"
    )
    head_init: Literal["uniform", "he_normal"] = option(
        "uniform",
        added=True,
        help="first weights of the head: torch's uniform ones, or He's normal ones with biases of "
        "0, 2.45 times as large (MatConvNet)",
    )
    freeze_batch_norm: bool = option(
        False, help="keep batch-norm statistics fixed; weight and bias still train"
    )
    freeze_backbone: bool = option(
        False,
        added=True,
        help="train the head alone, on features that the backbone gives once and a cache keeps",
    )


@options
class InputConfig:
    """How images become tensors, in training and in evaluation."""

    augmentation: Literal["none", "affine_noise", "crop_flip"] = option(
        "none", help="training augmentation"
    )
    image_size: int = option(
        224, at_least=8, at_most=10_000, help="side of the network's input, pixels"
    )
    resize: int | None = option(
        None,
        help="side before cropping, pixels; null: image_size in evaluation, no resize in training",
    )
    keep_aspect: bool = option(
        False, help="evaluation resize keeps the aspect ratio (short side = resize)"
    )
    native_size: bool = option(
        False, added=True, help="evaluation shows whole images at their own size"
    )
    max_side: int | None = option(
        None,
        at_least=8,
        added=True,
        help="native_size: larger images are shrunk to this longer side, pixels",
    )
    train_resize: Literal["none", "short_side", "square"] = option(
        "short_side",
        added=True,
        help="crop_flip: what of an image is brought to 'resize', where that is given, before the "
        "crop",
    )
    crop: Literal["random_resized", "random"] = option(
        "random_resized",
        added=True,
        help="crop_flip: a box of random area and aspect ratio, brought to image_size, or a box "
        "of image_size pixels",
    )
    crop_area: list[float] = option(
        [0.16, 1.0], help="crop_flip: range of the crop's share of the area"
    )
    crop_aspect: list[float] = option(
        [0.75, 1.3333], help="crop_flip: range of the crop's aspect ratio"
    )
    flip: bool = option(True, help="crop_flip: mirror half of the images")
    rotation: float = option(
        0.0,
        added=True,
        at_least=0.0,
        at_most=180.0,
        help="crop_flip: largest rotation before the crop, degrees",
    )
    brightness: float = option(
        0.0, at_least=0.0, added=True, help="crop_flip: largest change of the factor"
    )
    contrast: float = option(
        0.0, at_least=0.0, added=True, help="crop_flip: largest change of the factor"
    )
    saturation: float = option(
        0.0, at_least=0.0, added=True, help="crop_flip: largest change of the factor"
    )
    hue: float = option(
        0.0,
        at_least=0.0,
        at_most=0.5,
        added=True,
        help="crop_flip: largest shift, share of the circle",
    )
    decoding: Literal["reduced", "upright", "stored"] = option(
        "reduced",
        added=True,
        help="upright: turned by the EXIF tag, transparency on white; reduced: upright, and JPEGs "
        "only as large as the view needs; stored: as PIL converts them, like the papers' "
        "code",
    )
    degrees: float = option(10.0, at_least=0.0, help="affine_noise: largest rotation, degrees")
    translate: float = option(
        0.08, at_least=0.0, at_most=0.5, help="affine_noise: largest shift, share of side"
    )
    scale: list[float] = option([0.85, 1.15], help="affine_noise: range of the zoom")
    noise: float = option(
        0.1,
        at_least=0.0,
        at_most=1e3,
        help="affine_noise: sd of Gaussian noise, in units of full scale",
    )
    mean: list[float] = option(
        [0.485, 0.456, 0.406], help="subtracted per channel after scaling to [0, 1]"
    )
    std: list[float] = option([0.229, 0.224, 0.225], help="divided by per channel")
    own_normalisation: bool = option(
        False,
        added=True,
        help="mean and std differ on purpose from those that the weights were pretrained with",
    )
    workers: int = option(
        0,
        at_least=0,
        at_most=1_000,
        help="processes that decode images; 0 decodes in the training process",
    )


@options
class OptimizerConfig:
    """Optimiser and its step size."""

    name: Literal["adam", "adamw"] = option("adam", help="optimiser")
    lr: float = option(
        1e-5, above=0.0, search={"times": [0.1, 10.0]}, help="learning rate of the backbone"
    )
    head_lr_multiplier: float = option(
        1.0,
        above=0.0,
        search={"log": [1.0, 100.0]},
        help="head and loss parameters learn this much faster",
    )
    layer_decay: float = option(
        1.0,
        above=0.0,
        at_most=1.0,
        added=True,
        help="each group of layers of the backbone learns this much slower than the one behind it",
    )
    weight_decay: float = option(
        0.0, at_least=0.0, search={"log": [1e-6, 1e-2]}, help="weight decay"
    )
    proxy_lr_multiplier: float | None = option(
        None,
        above=0.0,
        added=True,
        help="loss parameters (proxies) learn this much faster; null: as the head",
    )
    proxy_weight_decay: float | None = option(
        None,
        at_least=0.0,
        added=True,
        help="weight decay of loss parameters; null: as of the others",
    )


@options
class ScheduleConfig:
    """Learning rate over time, as a multiple of the optimiser's."""

    name: Literal["constant", "step", "one_cycle", "linear"] = option(
        "constant", help="shape of the schedule"
    )
    warmup_epochs: float = option(0.0, at_least=0.0, help="linear warm-up from 0, epochs")
    milestones: list[int] = option(
        [], help="step: epochs after which the rate is multiplied by gamma; one given twice: twice"
    )
    gamma: float = option(0.3, above=0.0, at_most=10.0, help="step: the factor")
    peak_at: float = option(
        0.3, above=0.0, below=1.0, help="one_cycle: share of the training at the peak"
    )


@options
class TrainingConfig:
    """Length and numerics of training."""

    epochs: int = option(
        1, at_least=0, at_most=10**7, help="epochs; 0 evaluates the network as it starts"
    )
    micro_batch: int | None = option(
        None,
        at_least=1,
        help="images per pass of multi-stage backpropagation; null means the whole batch at once",
    )
    staged: bool = option(
        False,
        added=True,
        help="micro_batch: the first pass is as in a test; in the second, each part has "
        "batch-norm statistics and an update of its own, as in FastAP's code",
    )
    precision: Precision = option(
        "float32",
        help="of the network's training passes on CUDA: an autocast type, or float32 whose "
        "products round their factors to tf32, which no GPU of the papers had",
    )
    threads: int = option(1, at_least=1, at_most=10_000, help="CPU threads of torch")
    deterministic: bool = option(True, help="demand deterministic algorithms")
    checkpoint_seconds: float = option(
        120.0, at_least=0.0, help="least time between rolling checkpoints, s"
    )


@options
class MemoryConfig:
    """Embeddings of earlier batches as further references of the loss (cross-batch memory)."""

    size: int | None = option(
        None,
        at_least=-1,
        help="remembered embeddings: null for none, -1 for the size of the training set, or 1 and "
        "up",
    )
    key: Literal["image", "fifo"] = option(
        "image",
        help="image: each training image keeps its latest embedding; fifo: the latest embeddings "
        "of all",
    )
    start_epoch: float = option(
        0.0, at_least=0.0, help="epochs at first that neither fill nor use the memory"
    )
    write_first: bool = option(
        False,
        added=True,
        help="write each batch before the loss reads, and from the first step on, so that the "
        "memory contains the batch, as in ROADMAP's code; start_epoch then only sets when "
        "the loss begins to read",
    )


@options
class QueryExpansionConfig:
    """Alpha query expansion: each query plus its k nearest, weighted by score^alpha."""

    alpha: float = option(at_least=0.0, help="power of the scores that weight the neighbours")
    k: int = option(at_least=1, help="neighbours added to each query")


@options
class EvaluationConfig:
    """What is measured, and when."""

    every: int = option(
        1, at_least=1, help="epochs between evaluations; the last epoch is always evaluated"
    )
    recall_at: Annotated[
        list[Annotated[int, Field(ge=1, le=999_999_999)]], AfterValidator(distinct)
    ] = option([1, 10, 100], min_length=1, help="the K of recall_at_K")
    batch_size: int = option(256, at_least=1, help="images per forward pass")
    neighbour_queries: int = option(32, at_least=0, help="queries whose top neighbours are kept")
    neighbours: int = option(10, at_least=1, help="neighbours kept per query")
    query_expansion: QueryExpansionConfig | None = option(
        None, help="null, or {alpha, k}: expand every query"
    )
    whitening: int | None = option(
        None,
        at_least=1,
        help="dimensions kept by PCA whitening learnt on the training images; null means none",
    )
    whitening_power: float = option(
        0.5,
        at_least=0.0,
        at_most=1.0,
        added=True,
        help="power of the variance that whitening divides by: 0.5 gives variance 1",
    )
    scales: (
        Annotated[list[Annotated[float, Field(gt=0, le=16)]], AfterValidator(distinct)] | None
    ) = option(
        None,
        added=True,
        min_length=1,
        help="show each image with its sides times each of these, and take the mean of its "
        "embeddings, brought to length 1; null: once, as the section input says",
    )
    scale_power: float = option(
        1.0,
        at_least=0.1,
        at_most=16.0,
        added=True,
        help="power that scales are averaged at: sign(x) |x|^p before the mean, the root after it",
    )
    keep_embeddings: bool = option(
        False,
        added=True,
        help="keep the last embeddings of the test images for 'score --run'; changes no number, "
        "and is in no digest",
    )


@options
class SamplerConfig:
    """A registered sampler and its parameters, which the sampler itself checks."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)


@options
class SeedsConfig:
    """Seeds of single roles, so that sources of noise can be varied apart; null: the run's seed."""

    weights: int | None = option(
        None, at_least=0, added=True, help="initial weights, those of a loss with any as well"
    )
    order: int | None = option(
        None, at_least=0, added=True, help="which images share a batch, and the order of batches"
    )
    augmentation: int | None = option(None, at_least=0, added=True, help="augmentation of images")


@options
class Recipe:
    """All sections of a recipe."""

    model: ModelConfig
    sampler: SamplerConfig
    input: InputConfig = field(default_factory=InputConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seeds: SeedsConfig = field(default=SeedsConfig(), metadata={"added": True})


def check_recipe(recipe: Recipe) -> list[Problem]:
    """Return the problems between the sections of a recipe, and inside of ``input``.

    The width of a network without a head is unknown here, so training checks its whitening.
    """
    model = recipe.model
    memory = recipe.memory
    measured = recipe.evaluation
    frozen = model.freeze_backbone
    epochs = recipe.training.epochs
    milestones = recipe.schedule.milestones
    kept = measured.whitening
    width = model.embedding_dim
    problems = check_input(recipe.input, model.channels)
    bare = ModelConfig(
        backbone=FEATURES,
        freeze_backbone=True,
        layer_norm=model.layer_norm,
        embedding_dim=width,
        head_init=model.head_init,
    )
    given = model.backbone == FEATURES
    return [problem.below("input") for problem in problems] + failing(
        (
            given and model != bare,
            "model",
            "features are given (model.backbone); set freeze_backbone: true, and leave out all but "
            "layer_norm, embedding_dim and head_init",
        ),
        (
            given and recipe.input != InputConfig(),
            "input",
            "features have no images to show (model.backbone); leave the section out",
        ),
        (
            frozen and recipe.input.augmentation != "none",
            "input.augmentation",
            f"'{recipe.input.augmentation}' changes images at each step, and a frozen backbone "
            "sees each image once (model.freeze_backbone); give 'none'",
        ),
        (
            frozen and model.pooling == "gem",
            "model.pooling",
            "'gem' learns its power from feature maps, of which a frozen backbone leaves one "
            "vector (model.freeze_backbone); give 'avg', 'max', 'token' or 'native'",
        ),
        (
            frozen and width is None and epochs,
            "model.embedding_dim",
            "null means no head, and with model.freeze_backbone nothing else is trained; give the "
            "width of the head",
        ),
        (
            milestones != sorted(epoch for epoch in milestones if epoch >= 0),
            "schedule.milestones",
            f"{milestones} do not rise from 0; give the epochs in order",
        ),
        (
            recipe.training.staged and recipe.training.micro_batch is None,
            "training.staged",
            "true has no meaning without training.micro_batch; give that, or false",
        ),
        (
            memory.size == 0,
            "memory.size",
            "0 remembers nothing; give null for no memory, -1 for the size of the training set",
        ),
        (
            memory.size is not None and memory.start_epoch >= epochs,
            "memory.start_epoch",
            f"{memory.start_epoch:g} is not before the end of the training ({epochs} epochs), so "
            "that the memory would never be used; start it earlier, or set memory.size to null",
        ),
        (
            frozen and measured.scales is not None,
            "evaluation.scales",
            "the features of a frozen backbone (model.freeze_backbone) are computed once, of "
            "images at one scale; give null",
        ),
        (
            kept is not None and width is not None and kept > width,
            "evaluation.whitening",
            f"{kept} dimensions are more than the {width} of model.embedding_dim; give at most "
            f"{width}, or null",
        ),
    )


def check_input(config: InputConfig, channels: int) -> list[Problem]:
    """Return the problems of the input options of a network with ``channels`` input channels."""
    small = config.resize is not None and config.resize < config.image_size
    free = config.resize is None or config.train_resize == "none"
    few = "has {} values for {} channels; give one, or one per channel"
    least = 1 / MOST_RATIO**2
    ranges = (
        ("crop_area", config.crop_area, 1.0),
        ("crop_aspect", config.crop_aspect, MOST_RATIO),
        ("scale", config.scale, MOST_RATIO),
    )
    return failing(
        (
            small,
            "resize",
            f"{config.resize} is smaller than image_size {config.image_size}, so that no crop "
            "fits; give at least image_size, or null",
        ),
        (
            config.crop == "random" and free,
            "crop",
            "'random' does not fit into images smaller than image_size; give resize, and "
            "train_resize 'short_side' or 'square', or crop: random_resized",
        ),
        (
            config.native_size and config.augmentation == "none",
            "native_size",
            "shows images of many sizes, which do not fit into one training batch; give "
            "augmentation: crop_flip, or native_size: false",
        ),
        (
            config.max_side is not None and not config.native_size,
            "max_side",
            f"{config.max_side} has no meaning without native_size: true; give null",
        ),
        *(
            (1 != len(values) < channels, key, few.format(len(values), channels))
            for key, values in (("mean", config.mean), ("std", config.std))
        ),
        (
            not all(1 / MOST_SCALE <= value <= MOST_SCALE for value in config.std),
            "std",
            f"{config.std} divides the pixels; give values from {1 / MOST_SCALE:g} to "
            f"{MOST_SCALE:g}",
        ),
        (
            not all(abs(value) <= MOST_SCALE for value in config.mean),
            "mean",
            f"{config.mean} is subtracted from pixels in [0, 1]; give values of at most "
            f"{MOST_SCALE:g}",
        ),
        *(
            (
                len(values) != 2 or not least <= values[0] <= values[1] <= highest,
                key,
                f"{values} is not a range; give two rising numbers from {least:g} to {highest:g}",
            )
            for key, values, highest in ranges
        ),
    )
