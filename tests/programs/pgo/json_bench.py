"""Reads and writes JSON with orjson as often as the argument says."""
import sys

import orjson

ROWS = [
    {"id": i, "name": f"row {i} \u00e9", "tags": ["a", "b", str(i)], "value": i * 0.37, "on": i % 3 == 0, "none": None}
    for i in range(2000)
]
TEXT = orjson.dumps({"rows": ROWS})
for _ in range(int(sys.argv[1])):
    rows = orjson.loads(TEXT)
    orjson.dumps(rows, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
    orjson.dumps(rows)
