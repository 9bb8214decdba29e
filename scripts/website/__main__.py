"""``make docs``."""

import sys

from scripts.website.building import BUILT, build

if __name__ == "__main__":
    problems = build(BUILT)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"The site: {BUILT / 'site' / 'index.html'}")
