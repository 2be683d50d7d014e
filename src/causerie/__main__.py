"""`python -m causerie`: the command line where no script is installed."""

from causerie.cli import main

if __name__ == "__main__":
    main()
