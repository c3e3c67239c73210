"""Record two steps of ROADMAP's program: python tests/twins/roadmap.py CODE TRACE [xbm].

CODE: elias-ramzi/ROADMAP at fed37d7. It needs pytorch-metric-learning 0.9.99, record-keeper 0.9.30
and omegaconf on PYTHONPATH. Changed: ResNet-18 without weights, crops of 64 pixels, batch 32, a
width of 128, no mixed precision; with ``xbm`` loss and memory of its table 2.
"""

import contextlib
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import staging

code = Path(sys.argv[1])
kind = sys.argv[3] if len(sys.argv) > 3 else "roadmap"
staging.prepare(code)
staging.stub("torch.utils.tensorboard", SummaryWriter=staging.anything)

import torchvision
from omegaconf import OmegaConf

resnet18 = torchvision.models.resnet18
torchvision.models.resnet18 = lambda pretrained: resnet18()
data = Path(tempfile.mkdtemp())
CLASSES, EACH, GROUPS = 32, 6, 2
rows = ["image_id class_id super_class_id path"]
for number, path in enumerate(staging.images(data, CLASSES, EACH)):
    label = number // EACH
    rows.append(f"{number + 1} {label + 1} {label % GROUPS + 1} {path.relative_to(data)}")
(data / "Ebay_train.txt").write_text("\n".join(rows) + "\n")
(data / "Ebay_test.txt").write_text("\n".join(rows) + "\n")
folder = code / "roadmap" / "config"
parts = {"experience": "default", "dataset": "sop", "optimizer": "sop", "transform": "sop"}
parts |= {"model": "resnet", "loss": "roadmap", "memory": "default"}
if kind == "xbm":
    parts |= {"loss": "pair_loss", "memory": "sop"}
loaded = {key: OmegaConf.load(folder / key / f"{name}.yaml") for key, name in parts.items()}
config = OmegaConf.create(loaded)
config.experience.update(experiment_name="twin", log_dir=str(data / "logs"), seed=0, num_workers=0)
config.experience.pin_memory = False
config.dataset.kwargs.data_dir = str(data)
config.dataset.sampler.kwargs.batch_size = 32
config.model.kwargs.update(backbone_name="resnet18", embed_dim=128, with_autocast=False)
config.transform.train.RandomResizedCrop.size = 64
config.transform.train.Resize.size = 72
run = import_module("roadmap.run")
update = sys.modules["roadmap.engine.base_update"]
line = (
    "TRACE(net, list(optimizer.values()), inputs=batch['image'], labels=labels.view(-1), "
    "embeddings=di, loss=total_loss, numbers=[int(p[-10:-8]) * 100 + int(p[-6:-4]) for p in "
    "batch['path']], memory=(memory_embeddings, memory_labels.view(-1)) if memory else None)"
)
path = code / "roadmap" / "engine" / "base_update.py"
staging.run(staging.pasted(path, "if scaler is None:", line), update, path)
sys.modules["roadmap.engine.train"].base_update = update.base_update
staging.Paste(Path(sys.argv[2]))
with contextlib.suppress(staging.EndedError):
    run.run(config)
