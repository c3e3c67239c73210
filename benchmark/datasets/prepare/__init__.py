"""Getting datasets onto the disk and knowing that they are whole: fetch, unpack, count, decode, pack.

Nothing half-written is ever taken for complete: downloads, unpacked files and packed images lie under other
names until they are whole, and whatever stopped a step, the same command started again finishes it.
"""
