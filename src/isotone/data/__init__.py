"""Tables on disk as checked arrays: CSV, Parquet and ROOT."""
