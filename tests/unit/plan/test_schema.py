"""The JSON schemas that are shipped for editors are those of the models, and accept the project's own files."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from kernelab.plan.schema import SCHEMAS, schema_text
from kernelab.plan.strict_yaml import read

ROOT = Path(__file__).parents[3]
FILES = {
    "config.schema.json": [ROOT / "config.yaml"],
    "kernels.schema.json": sorted((ROOT / "kernels").glob("*/kernels.yaml")),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_shipped_schema_is_current(name: str) -> None:
    """If this fails: python -m kernelab schema docs/schema"""
    assert (ROOT / "docs" / "schema" / name).read_text() == schema_text(name)


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_accepts_what_we_accept_and_refuses_an_unknown_key(name: str) -> None:
    schema = json.loads(schema_text(name))
    for path in FILES[name]:
        data = read(path).data
        jsonschema.validate(data, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data | {"unknown": 1}, schema)
