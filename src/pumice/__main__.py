"""``python -m pumice`` runs the command, as ``pumice`` does."""

from pumice.cli.entry import main

if __name__ == "__main__":
    main()
