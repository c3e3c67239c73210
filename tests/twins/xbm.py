"""Record two steps of XBM's program: python tests/twins/xbm.py CODE TRACE.

CODE: msight-tech/research-xbm at 223ecdc. It needs yacs on PYTHONPATH. Changed: its ResNet-50
without weights at 64 pixels, batch 32, and the memory from the first step on.
"""

import contextlib
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import staging

code = Path(sys.argv[1])
staging.prepare(code)
staging.stub("tensorboardX", SummaryWriter=staging.anything)

import torch

data = Path(tempfile.mkdtemp())
CLASSES, EACH = 16, 8
lines = [
    f"{path.relative_to(data)},{number // EACH}"
    for number, path in enumerate(staging.images(data, CLASSES, EACH))
]
(data / "train.txt").write_text("\n".join(lines) + "\n")
cfg = import_module("ret_benchmark.config").cfg
cfg.merge_from_file(str(code / "configs" / "sample_config.yaml"))
changed = {
    "MODEL.DEVICE": "cpu",
    "MODEL.PRETRAIN": "scratch",
    "DATA.TRAIN_IMG_SOURCE": str(data / "train.txt"),
    "DATA.TRAIN_BATCHSIZE": 32,
    "DATA.NUM_WORKERS": 0,
    "INPUT.ORIGIN_SIZE": [72, 72],
    "INPUT.CROP_SIZE": [64, 64],
    "XBM.START_ITERATION": 0,
    "XBM.SIZE": 4096,
}
cfg.merge_from_list([item for pair in changed.items() for item in pair])
trainer = import_module("ret_benchmark.engine.trainer")
line = (
    "TRACE(model, [optimizer], criterion, inputs=images, labels=targets, embeddings=feats, "
    "loss=loss, numbers=indices, memory=xbm.get())"
)
path = code / "ret_benchmark" / "engine" / "trainer.py"
text = staging.pasted(path, "optimizer.zero_grad()", line)
staging.run(text.replace("_train_loader.next()", "next(_train_loader)"), trainer, path)
build = {
    name: import_module(f"ret_benchmark.{module}")
    for name, module in {
        "model": "modeling",
        "loss": "losses",
        "solver": "solver",
        "data": "data",
    }.items()
}
model = build["model"].build_model(cfg)
optimizer = build["solver"].build_optimizer(cfg, model)
staging.Paste(Path(sys.argv[2]))
torch.cuda.max_memory_allocated = lambda: 0
with contextlib.suppress(staging.EndedError):
    trainer.do_train(
        cfg,
        model,
        build["data"].build_data(cfg, is_train=True),
        [],
        optimizer,
        None,
        build["loss"].build_loss(cfg),
        None,
        staging.anything(),
        torch.device("cpu"),
        10**9,
        {},
        staging.anything(),
    )
