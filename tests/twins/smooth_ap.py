"""Record two steps of Smooth-AP's program: python tests/twins/smooth_ap.py CODE TRACE.

CODE: Andrew-Brown1/Smooth_AP at 59927ec. Changed: torchvision's ResNet-18 without weights in place
of pretrainedmodels' ResNet-50, crops of 64 pixels, batch 32, a width of 128.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import staging

code = Path(sys.argv[1]).resolve() / "src"
out = Path(sys.argv[2]).resolve()
staging.prepare(code)

import pandas as pd
import torchvision
from torchvision import transforms

pd.read_table = lambda path, header, delim_whitespace: pd.read_csv(path, sep=" ", header=header)


def resnet50(num_classes, pretrained):
    network = torchvision.models.resnet18()
    network.last_linear = network.fc
    del network.fc
    return network


staging.stub("pretrainedmodels", resnet50=resnet50)
staging.stub("tensorboardX", SummaryWriter=staging.anything)
crop = transforms.RandomResizedCrop
transforms.RandomResizedCrop = lambda size, **options: crop(64, **options)
data = Path(tempfile.mkdtemp())
root = data / "vehicle_id"
CLASSES, EACH = 16, 8
lines = []
(root / "image").mkdir(parents=True)
for number, path in enumerate(staging.images(data, CLASSES, EACH)):
    path.rename(root / "image" / f"{number:07d}.jpg")
    lines.append(f"{number} {number // EACH}")
for name, text in {
    "train_test_split/train_list.txt": lines,
    "train_test_split/test_list_800.txt": lines,
    "train_test_split/test_list_1600.txt": lines,
    "train_test_split/test_list_2400.txt": lines,
    "attribute/model_attr.txt": [f"{label} {label % 4}" for label in range(CLASSES)],
}.items():
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("\n".join(text) + "\n")
sys.argv = ["main.py", "--bs", "32", "--fc_lr_mul", "1", "--embed_dim", "128", "--kernels", "0"]
sys.argv += ["--source_path", str(data), "--save_path", str(data / "out"), "--not_pretrained"]
line = (
    "TRACE(model, [optimizer], inputs=input, labels=class_labels, embeddings=features, "
    "loss=loss.sum())"
)
path = code / "main.py"
text = staging.pasted(path, "loss.backward()", line)
text = text.replace("torch.device('cuda')", "torch.device('cpu')")
text = text.replace("os.chdir(", f"os.chdir({str(data)!r}) or (")
os.chdir(data)
staging.Paste(out)
main = sys.modules["__main__"]
main.__file__ = str(path)
with contextlib.suppress(staging.EndedError):
    staging.run(text, main, path)
