"""`python -m tenuto` is the same as the `tenuto` command."""

from tenuto.cli.main import main

if __name__ == "__main__":
    main()
