"""The report's models go in, the JSON Schema of docs/report.schema.json comes out: `python -m grader.schema`."""

import json
import sys

from grader.report import SCHEMA, Report


def schema() -> str:
    """The schema of a report as published, ending in a newline."""
    models = Report.model_json_schema(by_alias=True, mode="serialization")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA}
    return json.dumps({**head, **models}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())
