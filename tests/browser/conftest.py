"""The browser that the tests of pages look with."""

from __future__ import annotations

from browser_visits import chromium, pictures, visit  # noqa: F401
