"""What is done to the processes, one module per kind of harm."""
