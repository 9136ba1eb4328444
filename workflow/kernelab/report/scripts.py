"""The Vega libraries as one script, to be written into the page: nothing is fetched when it is read.

vl-convert carries Vega, Vega-Lite and Vega-Embed (BSD-3-Clause) and joins them in about 6 s; the result is kept in
the user's cache folder for the next report.
"""

from __future__ import annotations

import os
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
        raise UserError(f"{PACKAGE} is not installed; the report needs it: pip install {PACKAGE} altair") from None
    kept = _cache() / f"vega-{version}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass
    import vl_convert

    script = vl_convert.javascript_bundle().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    try:
        write_text(kept, script)
    except OSError:
        pass  # a home that cannot be written costs the next report 6 s
    return script


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "kernelab"
