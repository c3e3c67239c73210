"""A study of your own images: a look at a directory of class folders, and settings that fit what is
there."""
