"""What the program tells about itself."""
