"""How functions are called: those that are answered without Spark, each in several ways.

A line has names, and for each way the type of the result before the types of the arguments. `$x`
is one of the texts that CHOICES has for x, `'...'` is itself, and a type in capitals is one of
several.
"""

import re
from typing import Final

Signature = tuple[str, ...]
"""The type of the result, then those of the arguments; `=a|b` is the text a, or b."""

WHOLE: Final = ("int", "bigint", "smallint")
NUMBERS: Final = (*WHOLE, "double", "float", "decimal")
PLAIN: Final = (*NUMBERS, "string", "boolean", "timestamp", "date")
_SEVERAL: Final = {
    "WHOLE": WHOLE,
    "NUMBER": NUMBERS,
    "PLAIN": PLAIN,
    "WHEN": ("timestamp", "date"),
    "ANY": (*PLAIN, "array", "map", "struct"),
    "REAL": ("double", "float"),
}
CHOICES: Final = {
    "text": "'a'|'c'|','|' '|'l'|'ž'|''|'ab'",
    "small": "0|1|2|3|5|-1|-3|40",
    "digits": "2|1|0|5",
    "divisor": "3|5|-7",
    "unit": "'year'|'YYYY'|'quarter'|'month'|'MON'|'week'|'day'|'DD'|'hour'|'minute'|'SECOND'",
    "date_unit": "'year'|'MM'|'month'|'week'|'quarter'|'YY'",
    "format": "'yyyy-MM-dd'|'yyyy/MM/dd HH:mm'|'HH:mm:ss.SSS'|'dd.MM.yyyy'|'yyyyMMdd'",
    "separator": "','|', '|'a'|' '|'ab'",
    "day": "'2026-01-05'|'2026-1-5'|'2026'",
    "instant": "'2026-01-05 01:02:03'|'2026-01-05T10:00:00Z'",
    "unique": "n|l|-n",
    "tiles": "1|2|3|10",
    "places": "0|1|2|3",
    "default": "-1|0",
    "null": "NULL",
    "words": "'a, b'",
}


def _read(text: str) -> dict[str, tuple[Signature, ...]]:
    read: dict[str, tuple[Signature, ...]] = {}
    for line in text.strip().splitlines():
        names, _, ways = line.partition(": ")
        found = [
            signature
            for result, taken in re.findall(r"(\S*)\((.*?)\)", ways)
            for signature in _spread((result, *filter(None, taken.split(", "))))
        ]
        for name in names.split(", "):
            read[name] = tuple(found)
    return read


def _spread(signature: Signature) -> list[Signature]:
    """Return a signature for each type that one in capitals stands for."""
    several = next((each for each in signature if each in _SEVERAL), None)
    if several is None:
        return [tuple(map(_choices, signature))]
    return [
        found
        for its_type in _SEVERAL[several]
        for found in _spread(tuple(its_type if each == several else each for each in signature))
    ]


def _choices(each: str) -> str:
    if each.startswith("$"):
        return f"={CHOICES[each[1:]]}"
    return f"={each}" if each.startswith("'") else each


SIGNATURES: Final = _read("""
length, char_length, character_length, octet_length: int(string) int(int) int(date)
upper, ucase, lower, lcase, trim, ltrim, rtrim, md5: string(string) string(bigint)
substring, substr: string(string, $small) string(string, $small, $small) string(string, smallint)
left, right, repeat: string(string, $small) string(string, smallint)
concat: string(string, string) string(string, int, date) string(string)
concat_ws: string($text, string, string) string($null, string, string) string($text, string)
replace: string(string, $text, $text)
lpad, rpad: string(string, $small, $text) string(string, $small)
instr: int(string, $text) int(string, string)
locate: int($text, string) int($text, string, $small)
position: int($text, string)
startswith, endswith, contains: boolean(string, $text) boolean(string, string)
split: strings(string, $separator)
abs: NUMBER(NUMBER)
ceil, ceiling, floor: bigint(WHOLE) bigint(REAL) decimal(decimal)
round: NUMBER(NUMBER) double(double, $digits) decimal(decimal, $digits) int(int, $digits)
sqrt: double(int) double(double) double(decimal)
mod, pmod: int(int, $divisor) bigint(bigint, int) double(double, $divisor)
isnan: boolean(double) boolean(float) boolean(int)
nvl, ifnull, nullif: PLAIN(PLAIN, PLAIN)
greatest, least, coalesce: PLAIN(PLAIN, PLAIN) bigint(int, bigint) double(float, double, int)
nvl2: PLAIN(string, PLAIN, PLAIN)
if: PLAIN(boolean, PLAIN, PLAIN)
isnull, isnotnull: boolean(ANY)
size: int(array) int(map) int(strings)
cardinality: int(array) int(map)
array_size: int(array) int(strings)
array_contains: boolean(array, int) boolean(strings, string)
named_struct: struct('x', int, 'y', string) struct('q', date)
array: array(int, int) strings(string, string) array(int)
year, quarter, month, day, dayofmonth, dayofyear, weekofyear, dayofweek, weekday: int(WHEN)
hour, minute, second: int(WHEN)
date_trunc: timestamp($unit, WHEN)
trunc: date(WHEN, $date_unit)
date_format: string(WHEN, $format)
to_date, date: date(WHEN) date($day)
to_timestamp: timestamp(WHEN) timestamp($instant)
date_add, date_sub, dateadd: date(WHEN, $small) date(date, smallint)
datediff, date_diff: int(date, WHEN) int(date, $day)
add_months: date(WHEN, $small)
last_day: date(WHEN)
unix_timestamp, unix_seconds, unix_millis, unix_micros: bigint(WHEN)
timestamp_seconds, timestamp_millis, timestamp_micros: timestamp(WHOLE)
""")

AGGREGATES: Final = _read("""
count: bigint(*) bigint(PLAIN) bigint(DISTINCT int) bigint(DISTINCT int, boolean)
sum: bigint(NUMBER) bigint(DISTINCT int) decimal(DISTINCT decimal)
avg: double(WHOLE) double(REAL) double(DISTINCT int)
mean: double(int) double(float)
min, max: PLAIN(PLAIN)
min_by, max_by: PLAIN(PLAIN, $unique)
bool_and, every, bool_or, some, any: boolean(boolean)
count_if: bigint(boolean)
stddev_samp, stddev_pop, var_samp, var_pop, stddev, std, variance: double(NUMBER)
""")
"""Of two rows that are both the last, `max_by` may take either: none are."""

WINDOWED: Final = _read("""
row_number, rank, dense_rank: int()
percent_rank, cume_dist: double()
ntile: int($tiles)
lag: PLAIN(PLAIN) int(int, $places) int(int, $places, $default) string(string, $places, $words)
lead: PLAIN(PLAIN) int(int, $places) int(int, $places, $default)
first_value, last_value: PLAIN(PLAIN)
""")
