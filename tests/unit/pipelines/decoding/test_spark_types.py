"""Spark's own words, in one line."""

from pyspark.errors import ParseException

from moldau.pipelines.decoding.spark_types import words_of


def test_the_text_is_not_repeated_below_what_is_wrong_with_it() -> None:
    error = ParseException(
        "[PARSE_SYNTAX_ERROR] Syntax error at or near end of input. SQLSTATE: 42601 (line 1, pos 14"
        ")\n\n== SQL ==\nid strin, user\n--------------^^^\n"
    )
    assert words_of(error) == "Syntax error at or near end of input. (line 1, pos 14)"
