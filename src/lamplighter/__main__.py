"""`python -m lamplighter` is the command `lamplighter`."""

from lamplighter.cli.start import start

if __name__ == "__main__":
    start()
