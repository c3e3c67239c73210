"""The servers of the outage tests."""

from __future__ import annotations

from mlflow_servers import (  # noqa: F401
    clean_tracking,
    closed_port,
    dripping_server,
    hanging_server,
    quick_logger,
    real_server,
)
