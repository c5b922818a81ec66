"""Pages of MemoryViz, as `torch.cuda._memory_viz trace_plot` writes them: a snapshot in base64 inside the script."""

import base64
import binascii
import re
from collections.abc import Iterator

from movie.trace.source import Source

_EMBEDDED = re.compile(rb'"base64":\s*"([A-Za-z0-9+/=\s]*)"')


def pickles_in(source: Source) -> Iterator[bytes]:
    """The pickles in a page, one for each file that the page shows. Raises TraceError if there is none."""
    found = False
    for match in _EMBEDDED.finditer(source.data):
        found = True
        try:
            yield base64.b64decode(match[1], validate=False)
        except binascii.Error as error:
            raise source.error(f"byte {match.start(1)}", f"is not base64: {error}") from None
    if not found:
        raise source.error("HTML", 'no snapshot in this page ("base64": "..." in its script): not a page of MemoryViz')
