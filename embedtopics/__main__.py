"""``python -m embedtopics``, the same as the command ``embedtopics``."""

from embedtopics.cli._app import main

if __name__ == "__main__":
    main()
