"""Training on rows that stay on disk: in C++ chunk by chunk, or in torch on shards of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import resolver

if TYPE_CHECKING:
    from isotone.training.streaming.shards import ParquetRows, train_stream

__all__ = ["ParquetRows", "train_stream"]

__getattr__ = resolver(__name__, dict.fromkeys(__all__, "shards"))
