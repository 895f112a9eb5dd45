"""One verb, one file: what each does inside its transaction. The SQL stands beside, in `sql/`."""
