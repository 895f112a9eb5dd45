"""`python -m lamplighter` is the command `lamplighter`."""

from lamplighter.cli.main import main

if __name__ == "__main__":
    main()
