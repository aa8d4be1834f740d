"""Text formats: one trial per line.

``layouts`` says which columns each format has, ``chunks`` cuts a stream at line ends, ``fast`` parses a clean chunk
with polars, ``careful`` parses any chunk line by line and names the first bad line, ``read`` and ``write`` put them
together.
"""
