"""The Vega libraries as one script, to be written into the page: nothing is fetched when it is read.

vl-convert carries Vega, Vega-Lite and Vega-Embed (BSD-3-Clause) and joins them in about 6 s; the result is kept in
the user's cache folder for the next report.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from kernelab.errors import UserError
from kernelab.records.record import write_text

PACKAGE = "vl-convert-python"


def vega_bundle() -> str:
    """The script. It defines `vegaEmbed`, and holds nothing that could end a script element.

    Raises:
        UserError: vl-convert is not installed.
    """
    try:
        version = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        raise UserError(
            f"{PACKAGE} is not installed; the report needs it: pip install {PACKAGE} altair"
        ) from None
    kept = _cache() / f"vega-{version}.js"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg] # its stub asks for what has a default
    script = bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    with suppress(OSError):  # a home that cannot be written costs the next report 6 s
        write_text(kept, script)
    return script


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "kernelab"
