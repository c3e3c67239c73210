"""A plugin's loss that returns the wrong thing is named with its file, in one error."""

from __future__ import annotations

import os

import pytest
from plugin_losses import FORWARD, plugins, take_steps

from benchmark.core.errors import RunError

NUMBER = "one floating-point number"
RETURNS = {
    "None": "NoneType",
    "1.0": "float",
    "'x'": "str",
    "(embeddings.sum(), {})": "tuple",
    "{'loss': embeddings.sum()}": "dict",
    "embeddings.sum(1)": r"a tensor of float32, shape \(12,\)",
    "embeddings.sum().reshape(1, 1)": r"a tensor of float32, shape \(1, 1\)",
    "torch.tensor(3)": r"a tensor of int64, shape \(\)",
    "(embeddings > 0).all()": r"a tensor of bool, shape \(\)",
    "embeddings.sum() * 1j": r"a tensor of complex64, shape \(\)",
    "torch.tensor(1.0)": "a number without a gradient",
    "embeddings.detach().sum()": "a number without a gradient",
}
OWN = """class Mine(Loss):
    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.own = {}
    def forward(self, embeddings, labels, *references, generator=None):
        return embeddings.sum()
"""
# what a class does wrong, and what is said of it
CLASSES = {
    "own parameter alone": (
        """class Mine(Loss):
    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.w = torch.nn.Parameter(torch.ones(2))
    def forward(self, embeddings, labels, *references, generator=None):
        return self.w.sum()
""",
        "does not depend on the embeddings",
    ),
    "complex parameter": (OWN.format("torch.nn.Parameter(torch.zeros(3).cfloat())"), "complex64"),
    "parameter without data": (OWN.format("torch.nn.Linear(2, 3, device='meta')"), "has no data"),
    "sparse gradients": (OWN.format("torch.nn.Embedding(9, 2, sparse=True)"), "sparse=False"),
    "a method of torch's hidden": (
        """class Mine(Loss):
    def parameters(self, recurse=True):
        return [1]
    def forward(self, embeddings, labels, *references, generator=None):
        return embeddings.sum()
""",
        "method parameters of its own",
    ),
    "a question to nobody": (FORWARD.format("raise EOFError"), r"line [0-9]+: EOFError"),
    "tiles without rows": (
        """class Mine(ScoreLoss):
    rows_per_tile = 0
    def on_scores(self, scores, relation, gradient, generator):
        return scores.sum(), scores
""",
        "rows_per_tile is 0; give a whole number",
    ),
    "graph kept over two steps": (
        """class Mine(Loss):
    kept = 0
    def forward(self, embeddings, labels, *references, generator=None):
        self.kept = self.kept + embeddings.square().sum().exp()
        return self.kept
""",
        "backward through the graph a second time",
    ),
    "backward called": (
        FORWARD.format("embeddings.sum().backward(); return embeddings.sum()"),
        r"called backward\(\)",
    ),
    "no generator": (
        "class Mine(Loss):\n    def forward(self, e, l):\n        return e.sum()\n",
        "TypeError: .*generator",
    ),
    "no sizes": (
        "class Mine(Loss):\n    def __init__(self, config):\n        super().__init__(config)\n",
        "TypeError: .*embedding_dim",
    ),
    "no base": (
        "class Mine(Loss):\n    def __init__(self, config, **sizes):\n        pass\n",
        r"super\(\).__init__",
    ),
    "nothing defined": ("class Mine(RankingLoss):\n    pass\n", "it defines no per_query"),
    "no ranks": (
        "class Mine(SoftRankLoss):\n    def soft_ranks(self):\n        return None\n",
        "soft_ranks returned NoneType",
    ),
    "parts of a sum": (
        """class Mine(Composite):
    def composition(self):
        return [(1.0, "untrained", {})]
""",
        "names loss 'untrained', which is not a loss of scores",
    ),
    "options of a part": (
        """class Mine(Composite):
    def composition(self):
        return [(1.0, "smooth_ap", {"tua": 1.0})]
""",
        "TypeError: .*tua",
    ),
    "a file of its own": (
        FORWARD.format("open('/nonexistent/x')"),
        r"line \d+: FileNotFoundError: .*/nonexistent/x",
    ),
    "letters of its own": (
        FORWARD.format("'\\u00e9'.encode('ascii')"),
        r"line \d+: UnicodeEncodeError",
    ),
}
PER_QUERY = {
    "None": "got NoneType",
    "scores.sum(1).long()": "got a tensor of int64",
    "scores.sum()": r"shape \(12,\); got a tensor of float32, shape \(\)",
    "scores.detach().sum(1)": "without a gradient with respect to the scores",
    "torch.ones(12, requires_grad=True)": "without a gradient with respect to the scores",
}
RANK = {
    "scores.sum(1)": "rank returned a tensor",
    "None": "rank returned NoneType",
    "(scores.sum(1), None)": "and NoneType for scores",
    "(scores.sum(1), scores[:1])": r"float32, shape \(1, 12\) for scores of shape \(12, 12\)",
    "(scores.sum(), scores)": r"float32, shape \(\) and",
    "(scores.sum(1)[:1], scores)": r"float32, shape \(1,\) and",
    "(scores.sum(1), scores.long())": "and a tensor of int64",
}
ON_SCORES = {
    "None": "on_scores returned NoneType",
    "(scores, scores)": r"on_scores returned a tensor of float32, shape \(12, 12\)",
    "(scores.sum().reshape(1), scores)": r"on_scores returned a tensor of float32, shape \(1,\)",
    "(scores.sum(), scores[:1])": r"and a tensor of float32, shape \(1, 12\)",
    "(scores.sum(), None)": "and NoneType",
    "()": "on_scores returned nothing",
}


@pytest.fixture
def write(tmp_path):
    with plugins(tmp_path) as function:
        yield function


def refused(path, told):
    with pytest.raises(RunError, match=told) as caught:
        take_steps()
    assert str(caught.value).startswith(f"loss 'mine' ({path}")
    return str(caught.value)


@pytest.mark.parametrize(("value", "told"), RETURNS.items(), ids=RETURNS)
def test_forward_that_returns_no_number_with_a_gradient_is_refused(value, told, write):
    assert NUMBER in refused(write(FORWARD.format(f"return {value}")), f"forward returned {told}")


@pytest.mark.parametrize(("text", "told"), CLASSES.values(), ids=CLASSES)
def test_a_class_that_cannot_be_trained_is_refused(text, told, write):
    refused(write(text), told)


@pytest.mark.parametrize(("value", "told"), PER_QUERY.items(), ids=PER_QUERY)
def test_numbers_of_queries_that_do_not_fit_are_refused(value, told, write):
    head = "class Mine(RankingLoss):\n    def per_query(self, scores, targets):\n"
    refused(write(f"{head}        return {value}"), told)


@pytest.mark.parametrize(("value", "told"), RANK.items(), ids=RANK)
def test_a_ranking_whose_shapes_do_not_fit_is_refused(value, told, write):
    head = "class Mine(RankingLoss):\n    def rank(self, scores, relation, scale, gradient, "
    refused(write(f"{head}generator):\n        return {value}"), told)


@pytest.mark.parametrize(("value", "told"), ON_SCORES.items(), ids=ON_SCORES)
def test_a_loss_of_scores_whose_shapes_do_not_fit_is_refused(value, told, write):
    head = "class Mine(ScoreLoss):\n    def on_scores(self, scores, relation, gradient, "
    refused(write(f"{head}generator):\n        return {value}"), told)


def test_a_loss_that_changes_the_working_directory_is_refused(write, tmp_path):
    here = os.getcwd()
    text = f"__import__('os').chdir({str(tmp_path)!r})\n        return embeddings.sum()"
    refused(write(FORWARD.format(text)), "forward changed the working directory")
    assert os.getcwd() == here


def test_an_error_in_the_lines_of_a_plugin_keeps_them_and_names_loss_and_file(write):
    path = write(FORWARD.format("return 1 / 0"))
    with pytest.raises(ZeroDivisionError) as caught:
        take_steps()
    (note,) = caught.value.__notes__
    line = 1 + path.read_text().splitlines().index("        return 1 / 0")
    assert note == f"raised in loss 'mine' ({path}), line {line}"


def test_a_sound_loss_trains(write):
    write(FORWARD.format("return embeddings.square().sum() + embeddings.sum()"))
    assert len(take_steps()) == 2
