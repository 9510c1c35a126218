"""Pages: what docs/trigger.md tells of the study, written from its numbers."""
