"""A Config of a plugin that no run could use is said where the catalogue is made."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import plugin_losses
import pytest
from plugin_losses import HEAD, plugins

from benchmark.core.errors import ConfigError
from benchmark.core.options import build, option
from benchmark.core.registry import Registry
from benchmark.core.sound_options import config_problems
from benchmark.input.samplers import Sampler
from benchmark.losses import LOSSES, catalogue, create_loss

LOSS = """class Mine(Loss):
    def forward(self, embeddings, labels, *references, generator=None):
        return embeddings.sum()
    {}
    class Config:
        {}
"""
DATACLASS = "@dataclass(frozen=True, kw_only=True)"
WRONG = {
    "a: float = option(1.0, above='x', help='h')": "'a': its bounds .*exclusiveMinimum: 'x'",
    "a: str = option('a', schema={'pattern': '('}, help='h')": r"'a': its bounds .*'\(' is not a",
    "a: float = option(1.0, schema={'x': len}, help='h')": "'a': its bounds .*plain values",
    "a: float = option(float('nan'), help='h')": "'a': its default: nan is not of type 'number'",
    "a: float = option(float('inf'), help='h')": "'a': its default: inf is not of type 'number'",
    "import numpy; a: float = option(numpy.float32(1), help='h')": "'a': its default: ",
    "a: float = option(0.5, above=1.0, help='h')": "'a': its default: 0.5 is less .*above 1.0",
    "a: int = option('1', help='h')": "'a': its default: '1' is not of type 'integer'",
    "a: complex = option(1.0, help='h')": "cannot be described .KeyError: .*complex.*allowed types",
    "embedding_dim: int = option(1, help='h')": r"'embedding_dim' has a name that is taken \(check",
    "num_classes: int = option(1, help='h')": "'num_classes' has a name",
    "seed: int = option(1, help='h')": "'seed' has a name that is taken",
    "name: str = option('a', help='h')": "'name' has a name that is taken",
    "check: bool = option(True, help='h')": "'check' has a name that is taken",
}


@pytest.fixture
def write(tmp_path):
    with plugins(tmp_path) as function:
        yield function


def refused(path, told):
    with pytest.raises(ConfigError, match=rf"loss 'mine' \({path}\): .*{told}"):
        catalogue.build_catalogue()


@pytest.mark.parametrize(("field", "told"), WRONG.items(), ids=range(len(WRONG)))
def test_an_option_that_no_run_could_use_is_named_with_loss_and_file(field, told, write):
    refused(write(LOSS.format(DATACLASS, field)), told)


def test_a_config_that_is_no_dataclass_is_named(write):
    refused(write(LOSS.format("", "a: float = 1.0")), "Config is no dataclass; put @dataclass")


def test_options_that_would_be_lost_for_want_of_a_decorator_are_named():
    class Config(LOSSES["smooth_ap"].target.Config):
        mine: float = 1.0

    assert "so mine would be lost" in config_problems(Config)[0]


def test_a_function_is_no_loss(write):
    refused(write("def mine(embeddings, labels):\n    pass\n"), "no class derived from Module")


def test_a_kind_that_nobody_knows_is_named(write, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(plugin_losses, "HEAD", HEAD.replace('"mine"', '"mine", kind="rank"'))
        path = write(LOSS.format(DATACLASS, "pass"))
    refused(path, r"kind is 'rank' \(allowed: ranking, pair")


def test_a_run_says_it_as_well_when_the_file_has_changed_since(write, monkeypatch):
    import benchmark.losses

    path = write(LOSS.format(DATACLASS, "check: bool = option(True, help='h')"))
    fresh = benchmark.losses._require_sound_plugins.__wrapped__
    monkeypatch.setattr(benchmark.losses, "_require_sound_plugins", fresh)
    with pytest.raises(ConfigError, match=rf"{path}\): option 'check' has a name"):
        create_loss("mine")


def test_a_plugin_of_another_kind_is_checked_as_well():
    registry = Registry("sampler", "json")

    @registry.register("mine")
    class Mine(Sampler):
        @dataclass(frozen=True)
        class Config:
            size: int = option(0, at_least=1, help="h")

        def batches(self, generator):
            return []

    @registry.register("other")
    class Other:
        Config = Mine.Config

    default, base = registry.plugin_problems(Sampler)
    assert default.startswith(f"sampler 'mine' ({sys.modules[__name__].__file__}): option 'size'")
    assert base.endswith("it is no class derived from Sampler; derive it")


def test_a_class_that_lacks_what_its_kind_defines_is_named():
    registry = Registry("sampler", "json")

    @registry.register("mine")
    class Mine(Sampler):
        @dataclass(frozen=True)
        class Config:
            pass

    (found,) = registry.plugin_problems(Sampler)
    assert found.endswith("it lacks batches; define it")


def test_the_losses_of_the_suite_have_sound_options():
    for entry in LOSSES:
        assert config_problems(entry.target.Config, ("check", "seed")) == [], entry.name


def test_options_that_the_config_itself_refuses_are_one_error():
    @dataclass(frozen=True, kw_only=True)
    class Config:
        low: float = option(0.0, help="the lower bound")
        high: float = option(1.0, help="the upper bound")

        def __post_init__(self):
            if self.low > self.high:
                raise ValueError("low lies above high")

    with pytest.raises(ConfigError, match=r"loss 'mine'(?s:.*)ValueError: low lies above high"):
        build(Config, {"low": 2.0}, "loss 'mine'")
