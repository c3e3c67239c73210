"""Record two steps of the library's example: python tests/twins/library_example.py CODE TRACE.

CODE: KevinMusgrave/pytorch-metric-learning at 216a792, of which SubCenterArcFaceMNIST.ipynb is run.
Changed: made-up images in place of MNIST, and no GPU.
"""

import contextlib
import json
import sys
from pathlib import Path

import staging

path = Path(sys.argv[1]) / "examples" / "notebooks" / "SubCenterArcFaceMNIST.ipynb"
staging.prepare()

import torch
from PIL import Image
from torchvision import datasets


class MNIST(torch.utils.data.Dataset):
    def __init__(self, root, transform, **options):
        generator = torch.Generator().manual_seed(7)
        self.pixels = (256 * torch.rand(640, 28, 28, generator=generator)).byte()
        self.transform = transform

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, number):
        return self.transform(Image.fromarray(self.pixels[number].numpy())), number % 10


datasets.MNIST = MNIST
cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
text = "\n".join(cell for cell in code[1:3])
line = (
    "        TRACE(model, [optimizer, loss_optimizer], loss_func, inputs=data, labels=labels, "
    "embeddings=embeddings, loss=loss)\n"
)
text = text.replace("        loss.backward()\n", f"{line}        loss.backward()\n")
text = text.replace('torch.device("cuda")', 'torch.device("cpu")')
staging.Paste(Path(sys.argv[2]))
with contextlib.suppress(staging.EndedError):
    staging.run(text, sys.modules["__main__"], path)
