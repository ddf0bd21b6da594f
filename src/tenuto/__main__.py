"""`python -m tenuto` is the same as the `tenuto` command."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `-m` puts the working directory first: a module of a project in it would be imported in the place of a library.
    del sys.path[0]

from tenuto.cli.main import main

if __name__ == "__main__":
    main()
