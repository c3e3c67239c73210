"""One reported number against one published number, from the figures alone, without any run."""
