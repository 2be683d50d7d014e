"""Every format in and out.

`read` turns a file of any supported format into dialogues and exchanges, one at a time, and
`records_of` does so with what is in memory; `write_table` and `read_table` keep scores.
"""

from __future__ import annotations

from causerie.io.addresses import Folder
from causerie.io.annotations import Annotation, Labelled
from causerie.io.atomic import atomic_write, write_whole
from causerie.io.readers import INPUT_FORMATS
from causerie.io.reading import (
    Record,
    Said,
    check_inputs,
    read,
    read_annotations,
    read_labelled,
    read_made,
    read_turns,
    records_of,
)
from causerie.io.records import to_fields
from causerie.io.rows import parse_columns
from causerie.io.sources import Rejected
from causerie.io.tables import (
    Block,
    arrow_table,
    check_table_path,
    parquet_bytes,
    read_table,
    write_blocks,
    write_table,
)

__all__ = [
    "INPUT_FORMATS",
    "Annotation",
    "Block",
    "Folder",
    "Labelled",
    "Record",
    "Rejected",
    "Said",
    "arrow_table",
    "atomic_write",
    "check_inputs",
    "check_table_path",
    "parquet_bytes",
    "parse_columns",
    "read",
    "read_annotations",
    "read_labelled",
    "read_made",
    "read_table",
    "read_turns",
    "records_of",
    "to_fields",
    "write_blocks",
    "write_table",
    "write_whole",
]
