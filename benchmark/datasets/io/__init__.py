"""Reading what lies on a disk: image files, lists, layouts, packed copies, pickles."""
