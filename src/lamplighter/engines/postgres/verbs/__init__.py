"""One file per verb: values to parameters, rows to answers. The verb itself is in `sql/`."""
