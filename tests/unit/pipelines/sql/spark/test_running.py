"""What Spark refuses, without the names that nobody has written."""

from moldau.pipelines.sql.spark.running import refusal


class SparkError(Exception):
    def getCondition(self) -> str:  # noqa: N802 - Spark's name
        return "UNRESOLVED_COLUMN"


def test_made_up_names_and_places_are_left_out() -> None:
    view = "_pyspark_0123456789abcdef0123456789abcdef"
    said = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nme` cannot be resolved. Did you "
        f"mean one of: [`{view}`.`__moldau_0`, `u`.`name`]. SQLSTATE: 42703; line 1 pos 7;\nx"
    )
    assert str(refusal(SparkError(said))) == (
        "A column with name `nme` cannot be resolved. Did you mean one of: [`u`.`name`]."
    )


def test_a_known_refusal_says_the_way_out() -> None:
    said = (
        "LeftOuter join between two streaming DataFrame/Datasets is not supported without a "
        "watermark"
    )
    assert "give both event_time and watermark" in str(refusal(SparkError(said)))
