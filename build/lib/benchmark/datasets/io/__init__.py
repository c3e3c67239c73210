"""Reads what lies on a disk: images, lists, class folders, packed copies, pickles."""
