"""MLflow as a sink: the run folders are the truth, MLflow shows them. A study finishes without it.

- ``store``: where the store is; preparing it once, before any run starts
- ``content``: what a run folder becomes in MLflow: name, parameters, series, final metrics, tags,
  artifacts
- ``notes``: the descriptions that the UI shows, and the reports that they link to
- ``client``: the few calls to MLflow that the other modules share
- ``mirror``: live mirroring while a run trains, from a process of its own, to a tracking server
  only
- ``importer``: brings in every finished run that is missing or incomplete, exactly once

MLflow itself is imported inside functions: it takes more than a second.
"""
