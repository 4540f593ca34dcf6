"""Spark for a handful of rows: tests end before compiling well has paid."""

from typing import Final

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
SMALL: Final = {
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
