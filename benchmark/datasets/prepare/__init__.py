"""Puts datasets onto the disk and checks them: download, unpack, count, decode, pack.

Nothing half-written is ever taken for complete: downloads, unpacked files and packed images have
other names until they are complete. Whatever stops a step, the same command continues it.
"""
