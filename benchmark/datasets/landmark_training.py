"""Training sets of landmarks: all images train, and revisited landmark sets are searched."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from benchmark.core.options import option
from benchmark.datasets.base import Dataset, Protocol, fingerprint_of
from benchmark.datasets.counts import Counts
from benchmark.datasets.index import IndexConfig, IndexedLoader, load_all

LandmarkSet = Literal["roxford5k", "rparis6k", "roxford_1m", "rparis_1m"]
ALLOWED = ", ".join(get_args(LandmarkSet))
BASES = {"roxford_1m": "roxford5k", "rparis_1m": "rparis6k"}  # set with distractors -> set
DISTRACTORS = "revisitop1m"


class LandmarkTrainingLoader(IndexedLoader):
    """Loads training images, and the landmark sets that ``landmarks`` names for evaluation.

    The protocols of ``roxford_1m`` and ``rparis_1m`` are those of ``roxford5k`` and ``rparis6k``
    with the images of ``revisitop1m`` as distractors.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(IndexConfig):
        """The options of indexed datasets (packed: the training images), and the evaluation."""

        landmarks: list[LandmarkSet] = option(
            ["roxford5k", "rparis6k"], help="landmark sets to evaluate on"
        )
        landmarks_root: str | None = option(
            None,
            help="directory with a folder for each of them; null: the one that holds the root",
        )

    metrics = ("map",)
    roles = ("train",)

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything wrong, landmark sets included."""
        problems = []
        if not self.config.landmarks:
            words = "landmarks names no set to evaluate on"
            problems.append(f"dataset '{self.name}': {words}; allowed: {ALLOWED}")
        loaders = self._landmark_loaders()
        own, *sets = load_all([super().load, *(one.load for one in loaders.values())], problems)
        loaded = dict(zip(loaders, sets, strict=True))
        protocols = self._protocols(loaded)
        counts = {"train": own.counts["train"]}
        for name, protocol in protocols.items():
            counts[name] = {"images": len(protocol.query)}
        for name, loader in loaders.items():
            for part in loader.expected:
                counts[f"{name} {part}"] = loaded[name].counts[part]
        return Dataset(
            self.name,
            own.train,
            protocols,
            fingerprint_of(own.fingerprint, *(one.fingerprint for one in loaded.values())),
            self.metrics,
            counts,
        )

    def expected_counts(self) -> Counts:
        """Return the published counts of the training images and of the landmark sets."""
        expected = dict(self.expected)
        for name, loader in self._landmark_loaders().items():
            expected |= {f"{name} {part}": kinds for part, kinds in loader.expected.items()}
        return expected

    def _protocols(self, loaded: dict[str, Dataset]) -> dict[str, Protocol]:
        """Return the protocols of the sets that the configuration names."""
        protocols: dict[str, Protocol] = {}
        for name in dict.fromkeys(self.config.landmarks):
            base = loaded[BASES.get(name, name)]
            if name == base.name:
                protocols |= base.protocols
                continue
            for split, protocol in base.protocols.items():
                level = split.removeprefix(f"{base.name}_")
                distractors = loaded[DISTRACTORS].protocols[DISTRACTORS].query
                protocols[f"{name}_{level}"] = replace(protocol, distractors=distractors)
        return protocols

    def _landmark_loaders(self) -> dict[str, IndexedLoader]:
        """Return the loader of each set of files that the configuration needs."""
        names = [BASES.get(name, name) for name in self.config.landmarks]
        if set(self.config.landmarks) & set(BASES):
            names.append(DISTRACTORS)
        return self.beside(names, self.config.landmarks_root)
