"""Checks that each relative link in the Markdown files leads to a file, and each anchor to a heading.

python tools/links.py
"""

import re
import subprocess
import sys
from pathlib import Path

_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")


def anchors(text: str) -> set[str]:
    """The anchors that a forge gives the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", _FENCE.sub("", text), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(words.replace(" ", "-"))
    return found


def broken_links(page: Path) -> list[str]:
    problems = []
    text = page.read_text(encoding="utf-8")
    for target in _LINK.findall(_CODE.sub("", _FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):  # elsewhere: not ours to check
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists():
            problems.append(f"{page}: no file {target}")
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            problems.append(f"{page}: no heading {target}")
    return problems


def main() -> int:
    files = subprocess.run(["git", "ls-files", "*.md"], check=True, capture_output=True, text=True).stdout.split()
    problems = [problem for file in files for problem in broken_links(Path(file))]
    print("\n".join(problems) if problems else f"links: {len(files)} pages are sound")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
