"""Refusals of Spark's, in one line."""

import pytest

from moldau.pipelines.streams.refusals import explain_refusal


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (
            "Detected pattern of possible 'correctness' issue due to global watermark. The query",
            "to a topic with app.to",
        ),
        (
            "[STREAM_FAILED] Query terminated with exception: Redefining watermark is disallowed.",
            "leave the second one out",
        ),
        (
            "This output mode is not supported for streaming aggregations without watermark on",
            'emit="changes"',
        ),
        (
            (
                "LeftOuter join between two streaming DataFrame/Datasets is not supported without "
                "a watermark in the join keys, or a watermark on the nullable side"
            ),
            "b.at BETWEEN a.at AND",
        ),
        ("[UNSUPPORTED_FEATURE.STATE_STORE_MULTIPLE_COLUMN_FAMILIES] The", "RocksDB"),
    ],
)
def test_a_refusal_says_the_way_out(words: str, way_out: str) -> None:
    found = explain_refusal(ValueError(words))
    assert found is not None
    assert way_out in found
    assert "\n" not in found


def test_other_errors_are_not_explained() -> None:
    assert explain_refusal(ValueError("out of memory")) is None
