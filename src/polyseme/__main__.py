"""`python -m polyseme`."""

from polyseme.cli import main

if __name__ == "__main__":
    main()
