"""Record the first steps of a training run. Copy this file beside your program; it needs torch.

    recorder = Recorder("trace.pt", model=model, optimizers=[optimizer], loss=criterion, steps=20)
    ... in each step, before backward:
    recorder.step(inputs=inputs, labels=labels, embeddings=embeddings, loss=loss, numbers=numbers)
    ... after the first epoch:
    recorder.close()

It draws no random number of yours and changes none of your results.
"""

import os
from functools import partial

import torch

VERSION = 1
MOST_BYTES = 64 * 2**20  # of parameters and memories of the loss, over all steps


class Recorder:
    """Writes labels of all batches, and tensors of the first ``steps`` steps, to ``path``.

    ``optimizers`` are all of them; ``loss`` is the module of the loss, of which parameters and
    buffers are kept. ``coordinates`` of each parameter tensor are kept around each update.
    """

    def __init__(self, path, *, model, optimizers, loss=None, steps=20, coordinates=64):
        self.path = path
        self.steps = steps
        self.loss = loss if isinstance(loss, torch.nn.Module) else torch.nn.Module()
        parts = torch.nn.ModuleDict({"model": model, "loss": self.loss})
        self.parameters = {name: x for name, x in parts.named_parameters() if x.requires_grad}
        self.names = {value: name for name, value in self.parameters.items()}
        generator = torch.Generator().manual_seed(0)
        self.places = {}
        for name, value in self.parameters.items():
            place = torch.randperm(value.numel(), generator=generator)[:coordinates].sort().values
            self.places[name] = place.to(value.device)
            value.register_post_accumulate_grad_hook(self._after_backward)
        self.norms = [x for x in model.modules() if getattr(x, "running_mean", None) is not None]
        self.sums = self._sums()
        self.room = MOST_BYTES
        self.now = None  # the step that is recorded
        self.update = None  # the update that is recorded
        self.dtype = None
        self.batches = []
        self.closed = False
        self.made = {}  # of each parameter: passes since the last update, norm of the gradient
        self.trace = {
            "version": VERSION,
            "torch": str(torch.__version__),
            "threads": torch.get_num_threads(),
            "processes": int(os.environ.get("WORLD_SIZE", 1)),
            "coordinates": coordinates,
            "shapes": {name: list(value.shape) for name, value in self.parameters.items()},
            "steps": [],
        }
        layer = next(layer for layer in model.modules() if hasattr(layer, "weight"))
        layer.register_forward_hook(self._after_layer)
        for optimizer in optimizers:
            if isinstance(optimizer, torch.optim.Optimizer):
                optimizer.register_step_pre_hook(self._before_update)
                optimizer.register_step_post_hook(self._after_update)
            else:
                optimizer.step = partial(self._around_update, optimizer, optimizer.step)

    def step(self, *, inputs, labels, embeddings, loss, numbers=None, memory=None):
        """Record a batch; call this once before ``backward``, with the loss that is not scaled.

        ``numbers``: the image of each row. ``memory``: embeddings and labels of earlier batches
        that the loss reads, unless they are buffers of ``loss``.
        """
        self.now = None
        if self.closed:
            return
        labels = on_cpu(torch.as_tensor(labels))
        numbers = None if numbers is None else on_cpu(torch.as_tensor(numbers))
        self.batches.append((labels, numbers))
        if len(self.batches) > self.steps:
            if len(self.batches) == self.steps + 1:
                self._write()  # the steps are safe, even if nobody closes
            return
        sums = self._sums()
        self.now = {
            "labels": labels,
            "numbers": numbers,
            "inputs": self._summary(inputs),
            "embeddings": on_cpu(embeddings),
            "loss": on_cpu(loss),
            "state": self._state(memory),
            "norms_moved": [bool(new != old) for new, old in zip(sums, self.sums, strict=True)],
            "dtype": str(self.dtype),
            "tf32": torch.backends.cuda.matmul.allow_tf32,
            "gradients": [],
            "updates": [],
        }
        self.sums = sums
        self.trace["steps"].append(self.now)
        if embeddings.requires_grad:
            kept = self.now["gradients"]
            embeddings.register_hook(lambda gradient: kept.append(on_cpu(gradient)))

    def close(self):
        """Write the trace; what comes later is not recorded."""
        if self.batches and not self.closed:
            self._write()
        self.closed = True
        self.now = None

    def _write(self):
        """Write the trace under another name until it is complete."""
        labels, numbers = zip(*self.batches, strict=True)
        self.trace["sizes"] = [len(batch) for batch in labels]
        self.trace["labels"] = torch.cat(labels)
        self.trace["numbers"] = None if None in numbers else torch.cat(numbers)
        torch.save(self.trace, f"{self.path}.part")
        os.replace(f"{self.path}.part", self.path)

    def _after_layer(self, layer, inputs, output):
        self.dtype = output.dtype  # shows autocast

    def _after_backward(self, parameter):
        if self.now:
            name = self.names[parameter]
            passes, _ = self.made.get(name, (0, None))
            self.made[name] = (passes + 1, parameter.grad.norm())

    def _before_update(self, optimizer, *_):
        self.update = None
        if not self.now:
            return
        groups = []
        known = []
        for group in getattr(optimizer, "param_groups", ()):
            read = {key: value for key, value in group.items() if isinstance(value, int | float)}
            inside = [self.names[value] for value in group["params"] if value in self.names]
            groups.append({**read, "names": inside})
            known += inside
        names = []
        gradients = []
        for name in known if groups else self.parameters:
            gradient = self.parameters[name].grad
            if name in self.made and gradient is not None:
                names.append(name)
                gradients.append(gradient)
        if not names:
            return
        values = [self.parameters[name] for name in names]
        state = getattr(optimizer, "state", {})
        # of an optimiser that unscales by itself
        scale = getattr(optimizer, "grad_scale", None) or 1.0
        self.update = {
            "optimizer": type(optimizer).__name__,
            "groups": groups,
            "names": names,
            "fresh": not any(state.get(value) for value in values),
            "passes": max(self.made[name][0] for name in names),
            "made": on_cpu(torch.stack([self.made.pop(name)[1] for name in names])),
            "norms": on_cpu(torch.stack(torch._foreach_norm(gradients))) / scale,
            "gradient": self._at(names, gradients) / scale,
            "before": self._at(names, values),
        }
        self.now["updates"].append(self.update)

    def _after_update(self, *_):
        if self.update:
            names = self.update["names"]
            self.update["after"] = self._at(names, [self.parameters[name] for name in names])

    def _around_update(self, optimizer, step, *arguments, **options):
        self._before_update(optimizer)
        result = step(*arguments, **options)
        self._after_update()
        return result

    def _at(self, names, tensors):
        """Return the recorded coordinates of these tensors, one after the other."""
        pairs = zip(names, tensors, strict=True)
        return on_cpu(torch.cat([value.detach().take(self.places[name]) for name, value in pairs]))

    def _sums(self):
        return [layer.running_mean.sum() + layer.running_var.sum() for layer in self.norms]

    def _state(self, memory):
        """Return parameters, buffers and memory of the loss, while there is room."""
        found = self.loss.state_dict(prefix="loss.")
        if memory is not None:
            found |= {"memory.rows": memory[0], "memory.labels": memory[1]}
        self.room -= sum(value.nbytes for value in found.values())
        return {name: on_cpu(value) for name, value in found.items() if self.room > 0}

    def _summary(self, inputs):
        """Return facts of a batch by channel, and in the first step two images whole."""
        if inputs is None or inputs.ndim != 4:
            return None
        channels = inputs.detach().float().transpose(0, 1).flatten(1)
        facts = {"shape": list(inputs.shape)}
        for name in ("amin", "amax", "mean"):
            facts[name] = on_cpu(getattr(channels, name)(1))
        # torch's own deviation takes ten times as long
        variance = channels.square().mean(1) - channels.mean(1).square()
        facts["std"] = on_cpu(variance.clamp(min=0).sqrt())
        if not self.trace["steps"]:
            facts["first"] = on_cpu(inputs[:2])
        return facts


def on_cpu(tensor):
    """Return a copy of a tensor on the CPU, without its graph."""
    return tensor.detach().to("cpu", copy=True)
