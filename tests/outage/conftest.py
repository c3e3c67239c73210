"""The servers of the outage tests."""

from __future__ import annotations

from mlflow_servers import clean_tracking, real_server  # noqa: F401
