"""One file per verb: values to arguments, replies to answers. The verb itself is in `lua/`."""
