"""A training loop written for these tests alone, with faults that can be planted in it.

Nothing here calls the suite, except for the recorder, which a stranger copies.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.replay.recorder import Recorder

CLASSES = 10
IMAGES = 12  # of a class
SIDE = 16
WIDTH = 16
EACH = 4  # images of a class in a batch
BATCH = 24
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
RATE = 1e-3
DECAY = 1e-2
HEAD = 2.0  # times the rate
PROXIES = 10.0


class SmoothAP(nn.Module):
    """1 - AP by sigmoids, one pair after the other (Brown et al., 2020); the query counts."""

    def __init__(self, tau=0.01, own=True):
        super().__init__()
        self.tau = tau
        self.own = own

    def forward(self, rows: Tensor, labels: Tensor, references: Tensor) -> Tensor:
        scores = rows @ references.T
        size = len(rows)
        losses = []
        for query in range(size):
            same = labels == labels[query]
            kept = torch.ones(size, dtype=torch.bool)
            if not self.own:
                kept[query] = False
            s = scores[query][kept]
            same = same[kept]
            above = torch.sigmoid((s[None, :] - s[:, None]) / self.tau)
            above = above - torch.diag(torch.diag(above))
            rank = 1 + above.sum(1)
            among = 1 + (above * same).sum(1)
            losses.append(1 - (among / rank)[same].mean())
        return torch.stack(losses).mean()


class ProxyAnchor(nn.Module):
    """Soft maxima of the images of a batch for each proxy (Kim et al., 2020)."""

    def __init__(self, alpha=32.0, margin=0.1, classes=CLASSES + 1):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, WIDTH) / WIDTH**0.5)
        self.alpha = alpha
        self.margin = margin

    def forward(self, rows: Tensor, labels: Tensor, references: Tensor) -> Tensor:
        cosines = rows @ F.normalize(self.proxies).T
        same = F.one_hot(labels, len(self.proxies)).bool()
        zero = torch.full_like(cosines[:1], 0.0)
        near = (-self.alpha * (cosines - self.margin)).masked_fill(~same, -torch.inf)
        far = (self.alpha * (cosines + self.margin)).masked_fill(same, -torch.inf)
        present = same.any(0).sum()
        pull = torch.logsumexp(torch.cat([zero, near]), 0).sum() / present
        push = torch.logsumexp(torch.cat([zero, far]), 0).sum() / len(self.proxies)
        return pull + push


class ContrastiveMemory(nn.Module):
    """Pairs of a batch and of a memory of earlier batches (Wang et al., 2020)."""

    def __init__(self, margin=0.5, size=60):
        super().__init__()
        self.margin = margin
        self.size = size
        self.register_buffer("rows", torch.zeros(0, WIDTH))
        self.register_buffer("labels", torch.zeros(0, dtype=torch.long))

    def term(self, rows, labels, others, other_labels):
        scores = rows @ others.T
        same = labels[:, None] == other_labels
        near = torch.where(same & (scores < 1 - 1e-5), 1 - scores, 0.0).sum()
        far = torch.where(~same & (scores > self.margin), scores, 0.0).sum()
        return (near + far) / len(rows)

    def forward(self, rows: Tensor, labels: Tensor, references: Tensor) -> Tensor:
        loss = self.term(rows, labels, references, labels)
        if len(self.rows):
            loss = loss + self.term(rows, labels, self.rows, self.labels)
        return loss

    def remember(self, rows, labels):
        self.rows = torch.cat([self.rows, rows.detach()])[-self.size :]
        self.labels = torch.cat([self.labels, labels])[-self.size :]


LOSSES = {
    "smooth_ap": SmoothAP,
    "proxy_anchor": ProxyAnchor,
    "cosine_contrastive": ContrastiveMemory,
}


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(SIDE * SIDE, WIDTH)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.layers(images))


class Hidden:
    """An optimiser of torch that shows nothing."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def step(self):
        self._optimizer.step()


class HiddenAdam:
    """Adam or AdamW that shows no hyperparameters and no state."""

    def __init__(self, groups, decoupled):
        self._groups = groups
        self._decoupled = decoupled
        self._taken = 0
        self._moments = {}

    @torch.no_grad()
    def step(self):
        self._taken += 1
        for group in self._groups:
            for value in group["params"]:
                if value.grad is None:
                    continue
                slope = value.grad
                if self._decoupled:
                    value.mul_(1 - group["lr"] * group["weight_decay"])
                else:
                    slope = slope + group["weight_decay"] * value
                first, second = self._moments.get(value, (0.0, 0.0))
                first = 0.9 * first + 0.1 * slope
                second = 0.999 * second + 0.001 * slope**2
                self._moments[value] = first, second
                root = (second / (1 - 0.999**self._taken)).sqrt() + 1e-8
                value.sub_(group["lr"] * first / (1 - 0.9**self._taken) / root)

    def set_rates(self, factor):
        for group in self._groups:
            group["lr"] = group.setdefault("first", group["lr"]) * factor


def images_of(generator: torch.Generator) -> Tensor:
    """Return images of classes in noise, as whole grey levels that fill their range."""
    centres = torch.rand(CLASSES, 1, 3, SIDE, SIDE, generator=generator)
    noise = torch.rand(CLASSES, IMAGES, 3, SIDE, SIDE, generator=generator)
    pixels = (255 * (0.5 * centres + 0.7 * noise - 0.1).clamp(0, 1)).round()
    return pixels.flatten(0, 1)


def batches_of(generator: torch.Generator, replacement: float, each: int, batch: int, last: int):
    """Yield the images of each batch: some images of some classes, none twice in an epoch."""
    width = batch // each
    left = [torch.randperm(IMAGES, generator=generator).tolist() for _ in range(CLASSES)]
    while True:
        classes = [
            c for c in torch.randperm(CLASSES, generator=generator).tolist() if len(left[c]) >= each
        ]
        if len(classes) < width:
            if last:
                c = classes[0] if classes else 0
                yield torch.arange(c * IMAGES, c * IMAGES + last)
            return
        numbers = []
        for c in classes[:width]:
            taken = [left[c].pop() for _ in range(each)]
            if torch.rand((), generator=generator) < replacement:
                taken = torch.randint(IMAGES, (each,), generator=generator).tolist()
            numbers += [c * IMAGES + number for number in taken]
        yield torch.tensor(numbers)


def train(
    path: Path,
    name: str = "smooth_ap",
    seed: int = 0,
    hidden: bool = False,
    autocast: bool = False,
    steps: int = 6,
    **fault,
) -> Path:
    """Train with a fault, if any; record the steps at ``path`` and return it."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    images = images_of(generator)
    network = Network()
    criterion = LOSSES[name](**fault.get("options", {}))
    rate = RATE * fault.get("rate", 1.0)
    decay = fault.get("decay", DECAY)
    head = rate * HEAD * fault.get("head", 1.0)
    groups = [
        {"params": list(network.layers.parameters()), "lr": rate, "weight_decay": decay},
        {"params": list(network.head.parameters()), "lr": head, "weight_decay": decay},
    ]
    own = list(criterion.parameters())
    if own and not fault.get("untrained"):
        of_loss = {
            "lr": rate * PROXIES * fault.get("proxies", 1.0),
            "weight_decay": fault.get("loss_decay", decay),
        }
        groups.append({"params": own, **of_loss})
    decoupled = fault.get("decoupled", False)
    if hidden and "kind" in fault:
        optimizer = Hidden(fault["kind"](groups, **fault.get("settings", {})))
    elif hidden:
        optimizer = HiddenAdam(groups, decoupled)
    else:
        kind = torch.optim.AdamW if decoupled else torch.optim.Adam
        optimizer = fault.get("kind", kind)(groups, **fault.get("settings", {}))
    parameters = [*network.parameters(), *own]
    if fault.get("filled"):  # as after a step that nobody recorded
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
    recorder = Recorder(path, model=network, optimizers=[optimizer], loss=criterion, steps=steps)
    mean = torch.tensor(fault.get("mean", MEAN)).view(-1, 1, 1)
    std = torch.tensor(fault.get("std", STD)).view(-1, 1, 1)
    passes = fault.get("passes", 1)  # batches of an update
    warm = fault.get("warm")  # batches of the warm-up
    drawn = [fault.get("replacement", 0.0), fault.get("each", EACH), fault.get("batch", BATCH)]
    batches = batches_of(generator, *drawn, fault.get("last", 0))
    for taken, numbers in enumerate(batches):
        network.train()
        if not fault.get("norms", False):
            for module in network.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        labels = numbers // IMAGES
        inputs = (images[numbers] / fault.get("white", 255.0) - mean) / std
        if "order" in fault:
            inputs = inputs[:, fault["order"]]
        if warm:
            for group in optimizer.param_groups if not hidden else ():
                group["lr"] = group.setdefault("first", group["lr"]) * min(1.0, taken / warm)
            if hidden:
                optimizer.set_rates(min(1.0, taken / warm))
        rounding = torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
        with rounding:
            rows = network(inputs)
        rows = rows.float() * fault.get("length", 1.0)
        rows = rows if fault.get("raw") else F.normalize(rows)
        references = rows.detach() if fault.get("lost") == "queries" else rows
        used = rows
        if fault.get("lost") == "rows":
            used = references = torch.cat([rows[: BATCH // 2], rows[BATCH // 2 :].detach()])
        shifted = labels + fault.get("shift", 0)
        with rounding if fault.get("low") else contextlib.nullcontext():
            value = criterion(used, shifted, references)
        value = value * fault.get("factor", 1.0)
        recorder.step(inputs=inputs, labels=labels, embeddings=rows, loss=value, numbers=numbers)
        for parameter in parameters if taken % passes == 0 else ():
            parameter.grad = None
        (value * fault.get("backward", 1.0)).backward()
        if "clip" in fault:
            nn.utils.clip_grad_norm_(parameters, fault["clip"])
        if taken % passes == passes - 1:
            optimizer.step()
        if name == "cosine_contrastive":
            criterion.remember(rows, labels)
    recorder.close()
    return path
