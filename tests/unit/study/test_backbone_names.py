"""A backbone that there is not is found when the study is read, and finding a sound one costs no
import of timm."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmark.core.errors import ConfigError
from benchmark.study import load_study

SOUND = [
    {"backbone": "resnet50.tv_in1k", "pretrained": True},
    {"backbone": "deit_small_distilled_patch16_224.fb_in1k", "pretrained": True},
    {"backbone": "googlenet.tv_in1k", "pretrained": True, "channels": 3},
    {"backbone": "tf_efficientnet_lite0", "pretrained": False},
]


@pytest.mark.parametrize("model", SOUND, ids=[model["backbone"] for model in SOUND])
def test_a_sound_backbone_is_accepted(model, study_data, recipe_data, write_study):
    recipe_data["model"] = model
    load_study(write_study(study_data))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"backbone": "resnet5O"}, "unknown backbone 'resnet5O'; did you mean resnet50"),
        ({"backbone": "register_model"}, "unknown backbone 'register_model'"),
        ({"backbone": "resnet50.tv_in2k", "pretrained": True}, "did you mean 'resnet50.tv_in1k'?"),
        ({"backbone": "resnet50", "pretrained": True}, "needs its weight tag spelled out"),
        ({"backbone": "googlenet.in1k", "pretrained": True}, "no weight tag 'in1k'"),
    ],
    ids=["architecture", "not an architecture", "tag", "no tag", "GoogLeNet's tag"],
)
def test_another_one_is_named_with_its_place_and_what_there_is(
    model, message, study_data, recipe_data, write_study
):
    recipe_data["model"] = model
    with pytest.raises(ConfigError) as caught:
        load_study(write_study(study_data))
    (problem,) = map(str, caught.value.problems)
    assert "tiny.yaml: model.backbone (line " in problem
    assert message in problem


def test_reading_the_studies_imports_neither_torch_nor_timm():
    lines = [
        "import sys",
        "from benchmark.study import load_study",
        "for name in ('embedded', 'fast_ap', 'roadmap', 'smooth_ap', 'listwise'): load_study(name)",
        "print(sorted({'torch', 'timm'} & set(sys.modules)))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
