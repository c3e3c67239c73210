"""MLflow as a sink: the run folders are the truth, MLflow shows them. A study finishes without it.

- ``store``: where the store is; preparing it once, before any run starts
- ``content``: what a run becomes in MLflow: name, parameters, series, metrics, tags, artifacts
- ``notes``: the descriptions that the UI shows, and the reports that they link to
- ``client``: the few calls to MLflow that the other modules share
- ``mirror_process``: live mirroring of a run, from a process of its own, to a tracking server only
- ``importer``: brings in every finished run that is missing or incomplete, exactly once

MLflow itself is imported inside functions: it takes more than a second.
"""
