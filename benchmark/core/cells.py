"""Cells of a study's grid: what runs that differ in their seed alone have in common."""

from __future__ import annotations

from dataclasses import dataclass, fields

SEPARATOR = "~"  # between the backbone and the options of a setting's label


@dataclass(frozen=True, order=True)
class Setting:
    """A network under a recipe, and the named options that change the recipe."""

    backbone: str
    options: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The path component, for example ``resnet50~sota``."""
        return SEPARATOR.join((self.backbone, *self.options))

    @classmethod
    def from_label(cls, label: str) -> Setting:
        """Return the setting with this label, as files and paths hold it."""
        backbone, *options = label.split(SEPARATOR)
        return cls(backbone, tuple(options))

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True, order=True)
class Cell:
    """One dataset, setting, loss and batch size.

    dataset     label of the dataset
    loss        label of the variant, for example ``smooth_ap_tau0.1``
    base_loss   registry name of the loss
    """

    dataset: str
    setting: Setting
    loss: str
    base_loss: str
    batch_size: int

    @property
    def label(self) -> str:
        """The folder of the cell's runs, for example ``sop/resnet50~sota/roadmap/bs128``."""
        return f"{self.dataset}/{self.setting}/{self.loss}/bs{self.batch_size}"

    def run_id(self, seed: int) -> str:
        """Return the identity of a run of this cell, which is its folder below ``results/runs``."""
        return f"{self.label}/seed{seed}"

    def __str__(self) -> str:
        return self.label


CELL_COLUMNS = tuple(item.name for item in fields(Cell))
