"""The stores: one folder each, and none imports another."""
