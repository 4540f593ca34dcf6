"""Functions that ksqlDB has and Spark has not, with what there is instead.

`docs/from-ksqldb.md` has the same list.
"""

from collections.abc import Mapping
from typing import Final

COUNTERPARTS: Final[Mapping[str, str]] = {
    # Aggregates.
    "ATTR": "CASE WHEN min(x) = max(x) THEN min(x) END",
    "CORRELATION": "corr(x, y)",
    "COUNT_DISTINCT": "count(DISTINCT x), or for ever: approx_count_distinct(x)",
    "EARLIEST_BY_OFFSET": "min_by(x, rowtime)",
    "HISTOGRAM": "count(*) with GROUP BY x",
    "LATEST_BY_OFFSET": "max_by(x, rowtime)",
    "STDDEV_SAMPLE": "stddev_samp(x)",
    "TOPK": "slice(sort_array(collect_list(x), false), 1, k)",
    "TOPKDISTINCT": "slice(sort_array(collect_set(x), false), 1, k)",
    # Arrays and maps.
    "ARRAY_CONCAT": "concat(x, y)",
    "ARRAY_LENGTH": "size(x)",
    "AS_MAP": "map_from_arrays(x, y)",
    "CUBE_EXPLODE": "GROUP BY CUBE (x, y)",
    "ENTRIES": "map_entries(x)",
    "FIELD": "array_position(array(a, b), x)",
    "GENERATE_SERIES": "sequence(a, b)",
    "MAP_UNION": "map_concat(x, y)",
    # JSON.
    "EXTRACTJSONFIELD": "get_json_object(x, '$.field')",
    "IS_JSON_STRING": "try_parse_json(x) IS NOT NULL",
    "JSON_ARRAY_CONTAINS": "array_contains(from_json(x, 'array<string>'), y)",
    "JSON_CONCAT": "to_json(map_concat(a, b)) of from_json(x, 'map<string, string>') each",
    "JSON_ITEMS": "from_json(x, 'array<string>')",
    "JSON_KEYS": "json_object_keys(x)",
    "JSON_RECORDS": "from_json(x, 'map<string, string>')",
    "TO_JSON_STRING": "to_json(x)",
    # Texts and bytes.
    "FROM_BYTES": "decode(x, 'UTF-8'), hex(x) or base64(x)",
    "INT_FROM_BYTES": "CAST(conv(hex(x), 16, 10) AS int)",
    "BIGINT_FROM_BYTES": "CAST(conv(hex(x), 16, 10) AS bigint)",
    "DOUBLE_FROM_BYTES": "a column DOUBLE of format='double'",
    "MASK_KEEP_LEFT": "concat(left(x, n), mask(substring(x, n + 1)))",
    "MASK_KEEP_RIGHT": "concat(mask(substring(x, 1, length(x) - n)), right(x, n))",
    "MASK_LEFT": "concat(mask(left(x, n)), substring(x, n + 1))",
    "MASK_RIGHT": "concat(substring(x, 1, length(x) - n), mask(right(x, n)))",
    "REGEXP_SPLIT_TO_ARRAY": "split(x, pattern)",
    "SPLIT_TO_MAP": "str_to_map(x, a, b)",
    "TO_BYTES": "encode(x, 'UTF-8'), unhex(x) or unbase64(x)",
    # Times.
    "CONVERT_TZ": "from_utc_timestamp(to_utc_timestamp(x, a), b)",
    "DATESUB": "x - INTERVAL 1 DAY",
    "DATETOSTRING": "date_format(date_from_unix_date(x), format)",
    "FORMAT_DATE": "date_format(x, format)",
    "FORMAT_TIME": "date_format(x, format)",
    "FORMAT_TIMESTAMP": "date_format(x, format)",
    "FROM_DAYS": "date_from_unix_date(x)",
    "PARSE_DATE": "to_date(x, format)",
    "PARSE_TIME": "to_time(x, format)",
    "PARSE_TIMESTAMP": "to_timestamp(x, format)",
    "STRINGTODATE": "unix_date(to_date(x, format))",
    "STRINGTOTIMESTAMP": "to_timestamp(x, format)",
    "TIMEADD": "x + INTERVAL 1 MINUTE",
    "TIMESTAMPSUB": "x - INTERVAL 1 MINUTE",
    "TIMESTAMPTOSTRING": "date_format(x, format)",
    "TIMESUB": "x - INTERVAL 1 MINUTE",
    # Addresses of pages.
    "URL_DECODE_PARAM": "url_decode(x)",
    "URL_ENCODE_PARAM": "url_encode(x)",
    "URL_EXTRACT_FRAGMENT": "parse_url(x, 'REF')",
    "URL_EXTRACT_HOST": "parse_url(x, 'HOST')",
    "URL_EXTRACT_PARAMETER": "parse_url(x, 'QUERY', name)",
    "URL_EXTRACT_PATH": "parse_url(x, 'PATH')",
    "URL_EXTRACT_PORT": "regexp_extract(parse_url(x, 'AUTHORITY'), ':([0-9]+)$', 1)",
    "URL_EXTRACT_PROTOCOL": "parse_url(x, 'PROTOCOL')",
    "URL_EXTRACT_QUERY": "parse_url(x, 'QUERY')",
    # The rest.
    "AS_VALUE": "x itself: a value has the columns of its key, too",
    "GEO_DISTANCE": "nothing: write the formula",
}
"""What takes the place of each; x and y are its arguments."""
