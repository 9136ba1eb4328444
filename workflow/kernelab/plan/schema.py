"""The JSON schemas of config.yaml and kernels.yaml, for editors; made from the models, so they cannot drift."""

from __future__ import annotations

import json
from pathlib import Path

from kernelab.plan.catalogue import Catalogue
from kernelab.plan.config import Config
from kernelab.plan.model import Strict

SCHEMAS: dict[str, type[Strict]] = {"config.schema.json": Config, "kernels.schema.json": Catalogue}


def schema_text(name: str) -> str:
    """The text of one schema file.

    Args:
        name: a key of SCHEMAS.
    """
    schema = SCHEMAS[name].model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema, indent=2) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in SCHEMAS:
        path = folder / name
        path.write_text(schema_text(name), encoding="utf-8")
        paths.append(path)
    return paths
