"""How long the service takes for what each page of the console asks, in a store of many jobs."""
