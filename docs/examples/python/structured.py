"""An answer as data, in a script without `async`.

python structured.py "which files are the largest?"
"""

import sys
from dataclasses import dataclass

import tenuto


@dataclass
class File:
    path: str
    lines: int


answer = tenuto.run(sys.argv[1], schema=list[File], mode="ask", max_turns=20)
if answer.value is None:
    sys.exit(f"{answer.outcome}: {answer.error}")
for file in answer.value:
    print(f"{file.lines:6} {file.path}")
