"""The embedded engine: one file, nothing to install."""
