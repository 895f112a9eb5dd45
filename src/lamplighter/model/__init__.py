"""Pure values and rules. Standard library only: no input or output, no clock, no event loop."""
