"""One module per measurement; each gives its part of the JSON file."""
