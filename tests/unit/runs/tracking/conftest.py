"""The tracking tests' servers, and the clean slate that each of them starts from."""

from __future__ import annotations

from mlflow_servers import clean_tracking, closed_port, hanging_server, real_server  # noqa: F401
