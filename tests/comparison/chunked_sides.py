"""Sides of a comparison in tiles of a few rows and columns, or in short chunks of a list."""

from dataclasses import replace

from evenscore.scale import ChunkedBlocks, LabelledChunks, as_chunked

BLOCKS = ("trials", "enroll", "test", "cohort")
FACTS = ("cohort_labels", "enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")


def in_chunks(part, tile_bytes=2000.0):
    """Return labelled blocks in tiles that do not divide the matrices evenly."""
    read = {}
    for name in BLOCKS:
        block = getattr(part.blocks, name)
        if block is not None and id(block) not in read:
            read[id(block)] = replace(as_chunked(block), stored=(5, 7), tile_bytes=tile_bytes)
    tables = {name: read.get(id(getattr(part.blocks, name))) for name in BLOCKS}
    facts = {name: getattr(part.blocks, name) for name in FACTS}
    return LabelledChunks(ChunkedBlocks(tables.pop("trials"), **tables, **facts), part.labels, part.name)


def listed_chunks(part, size=37):
    """Return blocks whose trials are a list, in chunks of a few trials."""
    found = LabelledChunks.of(part)
    trials = found.blocks.trials
    short = replace(trials, bounds=(*range(0, len(trials), size), len(trials)))
    tables = {name: getattr(found.blocks, name) for name in (*BLOCKS[1:], *FACTS)}
    return replace(found, blocks=ChunkedBlocks(short, **tables))
