"""A study of your own images: a look at the class folders, and settings that fit them."""
