"""Expressions of Spark's SQL, made by chance but of types that fit.

A seed makes the same ones each time. Operators stand without parentheses now and then, so that
what binds first is asked, too.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

from tests.spark.statements.signatures import NUMBERS, PLAIN, SIGNATURES, WHOLE, Signature

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("i", "n", "st.x", "I", "t.i"),
    "bigint": ("l", "t.l"),
    "smallint": ("sm",),
    "double": ("d", "m['k']"),
    "float": ("f",),
    "decimal": ("dc",),
    "string": ("s", "t", "st.y.z", "S"),
    "boolean": ("b", "t.b"),
    "timestamp": ("ts", "TS"),
    "date": ("dt",),
    "array": ("a",),
    "map": ("m",),
    "struct": ("st", "st.y"),
}
LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "7", "-3", "12", "2147483647", "-2147483648", "CAST(5 AS int)"),
    "bigint": ("1L", "-7L", "3000000000", "CAST(2 AS bigint)", "-9223372036854775808"),
    "smallint": ("3S", "CAST(-2 AS smallint)", "-1S"),
    "double": ("1.5D", "0D", "-2.25D", "1e3", "1.0E-4", "CAST(7 AS double)", "1e15", "-0.0D"),
    "float": ("CAST(1.5 AS float)", "CAST(-2 AS float)", "1.25F"),
    "decimal": ("1.5", "-0.05", "10.00", ".5", "5.", "00.50", "123456789.123", "1.5BD"),
    "string": ("'a'", "''", "'Praha'", "' x '", "'it''s'", "'a,b'", "\"q\"", "'%'", "'12'", "'č'",
               "'a\\tb'", "'A'", "'ab\"c'"),
    "boolean": ("true", "false", "TRUE"),
    "timestamp": ("TIMESTAMP '2026-01-31 12:34:56.789'", "TIMESTAMP '2024-02-29'",
                  "TIMESTAMP '1969-12-31T23:00:00+02:00'"),
    "date": ("DATE '2026-01-31'", "DATE '2024-02-29'", "DATE '1960-2-1'"),
    "array": ("array(1, 2, 3)", "array(i, n)", "array(1, NULL)"),
    "map": (),
    "struct": ("named_struct('x', 1, 'y', 'z')", "named_struct('x', i)"),
}  # fmt: skip
TYPE_NAMES: Final = {
    "int": "int", "bigint": "bigint", "smallint": "smallint", "double": "double", "float": "float",
    "decimal": "decimal(12,3)", "string": "string", "boolean": "boolean",
    "timestamp": "timestamp", "date": "date",
}  # fmt: skip

T = TypeVar("T")
_OTHERS: Final = 0.04
"""How often an argument is of any type: Spark casts some, and refuses others."""
COMPARED: Final = ("=", "!=", "<>", "<", "<=", ">", ">=", "<=>", "==")
INTERVALS: Final = (
    "INTERVAL '1' DAY", "INTERVAL 90 MINUTES", "INTERVAL 1 MONTH", "INTERVAL 2 WEEKS",
    "INTERVAL '3' HOUR", "INTERVAL 1 YEAR", "INTERVAL 15 SECONDS", "INTERVAL 250 MILLISECONDS",
    "INTERVAL '1' QUARTER", "INTERVAL '1-2' YEAR TO MONTH",
)  # fmt: skip
PATTERNS: Final = ("'%a%'", "'a_'", "'%'", "'Praha'", "'P%'", "'% %'", "''", "'_%'")
PARTS: Final = (
    "year",
    "QUARTER",
    "month",
    "week",
    "day",
    "dayofweek",
    "hour",
    "MINUTE",
    "doy",
    "second",
)


class ExpressionMaker:
    """Makes expressions of a type, out of the columns of one relation."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._results: dict[str, list[str]] = {}
        for name, signatures in SIGNATURES.items():
            for result in dict.fromkeys(each[0] for each in signatures):
                self._results.setdefault(result, []).append(name)

    def of(self, its_type: str, depth: int) -> str:
        """Return an expression; `depth` is how many others may be around each other in it."""
        if depth <= 0 or self._random.random() < 0.15:
            return self.leaf(its_type)
        makers = [self._called, self._called, self._called, self._chosen]
        if its_type in NUMBERS:
            makers += [self._computed, self._computed, self._cast]
        if its_type == "boolean":
            makers += [self._compared, self._compared, self._connected, self._tested]
        if its_type in ("timestamp", "date"):
            makers += [self._shifted, self._cast]
        if its_type == "string":
            makers += [self._joined, self._cast]
        return self.pick(makers)(its_type, depth - 1)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of several."""
        return self._random.choice(choices)

    def leaf(self, its_type: str) -> str:
        """Return a column or a literal."""
        if its_type == "strings":
            return f"split({self.leaf('string')}, ',')"
        literals = LITERALS[its_type]
        if literals and self._random.random() < 0.25:
            return self.pick(literals)
        return self.pick(COLUMNS[its_type])

    def call(self, name: str, depth: int, result: str | None = None) -> str:
        """Return a call of a function."""
        signatures = [each for each in SIGNATURES[name] if result in (None, each[0])]
        _, *takes = self.pick(signatures)
        args = [self.argument(each, depth) for each in takes]
        written = self.pick((name, name, name, name.upper()))
        if name == "position" and len(args) == 2 and self._random.random() < 0.5:
            return f"{written}({args[0]} IN {args[1]})"
        if name == "substring" and self._random.random() < 0.2:
            length = f" FOR {args[2]}" if len(args) > 2 else ""
            return f"{written}({args[0]} FROM {args[1]}{length})"
        if name in ("trim", "ltrim", "rtrim") and self._random.random() < 0.2:
            return f"trim({self.pick(('BOTH', 'LEADING', 'TRAILING'))} FROM {args[0]})"
        return f"{written}({', '.join(args)})"

    def plain_call(self, name: str, signature: Signature) -> str:
        """Return a call with columns for arguments."""
        return f"{name}({', '.join(map(self._plain, signature[1:]))})"

    def _plain(self, wanted: str) -> str:
        if wanted.startswith("="):
            return wanted[1:].rsplit("|", maxsplit=1)[-1]
        if wanted == "strings":
            return "split(s, ',')"
        return COLUMNS[wanted][0] if wanted in COLUMNS else wanted

    def argument(self, wanted: str, depth: int) -> str:
        """Return what a signature wants in one place."""
        if not wanted.startswith("=") and self._random.random() < _OTHERS:
            return self.leaf(self.pick(PLAIN))
        if wanted.startswith("="):
            return self.pick(wanted[1:].split("|"))
        return self.of(wanted, depth)

    def _operand(self, its_type: str, depth: int) -> str:
        """Return what stands beside an operator: in parentheses, or not."""
        made = self.of(its_type, depth)
        return f"({made})" if self._random.random() < 0.5 and " " in made else made

    def _called(self, its_type: str, depth: int) -> str:
        names = self._results.get(its_type)
        return self.call(self.pick(names), depth, its_type) if names else self.leaf(its_type)

    def _chosen(self, its_type: str, depth: int) -> str:
        one, other = self.of(its_type, depth), self.of(its_type, depth)
        match self.pick(("case", "when", "if", "coalesce")):
            case "case":
                end = f" ELSE {other}" if self._random.random() < 0.7 else ""
                return f"CASE WHEN {self.of('boolean', depth)} THEN {one}{end} END"
            case "when":
                values = self.leaf("int"), self.leaf("int")
                return (
                    f"CASE {self.of('int', depth)} WHEN {values[0]} THEN {one} "
                    f"WHEN {values[1]} THEN {other} END"
                )
            case "if":
                return f"if({self.of('boolean', depth)}, {one}, {other})"
            case _:
                return f"coalesce({one}, {other}, {self.leaf(its_type)})"

    def _computed(self, its_type: str, depth: int) -> str:
        one, other = self._operand(its_type, depth), self._operand(its_type, depth)
        others = NUMBERS[: NUMBERS.index(its_type) + 1] if its_type in WHOLE else (its_type,)
        narrow = self._operand(self.pick(others), depth)
        match self.pick(("+", "-", "*", "/", "%", "div", "neg")):
            case "neg":
                return f"- {one}"
            case "/":
                return f"{one} / {self.pick(('2', '3D', '-4', 'n + 1'))}"
            case "%":
                return f"{one} % {self.pick(('3', '5L', '-2'))}"
            case "div":
                return f"{one} div {self.pick(('2', '-3', '7L'))}"
            case "*":
                return f"{one} * {self.pick(('2', '-1', '1.5', '3L', narrow))}"
            case sign:
                return f"{one} {sign} {self.pick((other, narrow, '1', '2.5', '10L'))}"

    def _cast(self, its_type: str, depth: int) -> str:
        # What cannot be cast in ANSI mode is Spark's to refuse.
        given = self.pick([each for each in PLAIN if each != its_type])
        made = self.of(given, depth)
        if self._random.random() < 0.3:
            return f"({made})::{TYPE_NAMES[its_type]}"
        return f"CAST({made} AS {TYPE_NAMES[its_type]})"

    def _compared(self, _: str, depth: int) -> str:
        one = self.pick(PLAIN)
        other = self.pick(NUMBERS) if one in NUMBERS else one
        if one in ("date", "timestamp"):
            other = self.pick(("date", "timestamp"))
            if self._random.random() < 0.3:
                return f"{self._operand(one, depth)} {self.pick(COMPARED)} '2025-01-01'"
        sign = self.pick(COMPARED)
        return f"{self._operand(one, depth)} {sign} {self._operand(other, depth)}"

    def _connected(self, _: str, depth: int) -> str:
        one, other = self._operand("boolean", depth), self._operand("boolean", depth)
        return self.pick((f"{one} AND {other}", f"{one} OR {other}", f"NOT {one}", f"! {one}"))

    def _tested(self, _: str, depth: int) -> str:
        its_type = self.pick(PLAIN)
        one = self._operand(its_type, depth)
        no = self.pick(("", "NOT "))
        match self.pick(("null", "true", "in", "between", "like", "distinct")):
            case "null":
                return f"{one} IS {no}NULL"
            case "true":
                return f"{self._operand('boolean', depth)} IS {no}{self.pick(('TRUE', 'FALSE'))}"
            case "in":
                choices = ", ".join(self.leaf(its_type) for _ in range(self.pick((1, 2, 3))))
                return f"{one} {no}IN ({choices})"
            case "between":
                return f"{one} {no}BETWEEN {self.leaf(its_type)} AND {self.leaf(its_type)}"
            case "like":
                return f"{self._operand('string', depth)} {no}LIKE {self.pick(PATTERNS)}"
            case _:
                return f"{one} IS {no}DISTINCT FROM {self.leaf(its_type)}"

    def _shifted(self, its_type: str, depth: int) -> str:
        interval = self.pick(INTERVALS)
        if self._random.random() < 0.1:
            return f"{interval} + {self._operand(its_type, depth)}"
        return f"{self._operand(its_type, depth)} {self.pick('+-')} {interval}"

    def _joined(self, _: str, depth: int) -> str:
        parts = [self._operand(self.pick(("string", "string", "int")), depth) for _ in range(2)]
        return " || ".join([self._operand("string", depth), *parts[: self.pick((1, 2))]])

    def unparenthesized(self) -> str:
        """Return operators side by side, of types that fit one way or the other."""
        if self._random.random() < 0.4:
            terms = [self.pick(("", "", "- ")) + self.leaf(self.pick(WHOLE)) for _ in range(4)]
            signs = [f" {self.pick(('+', '-', '*', '%', 'div', '/', '||'))} " for _ in range(3)]
            return "".join(a + b for a, b in zip(terms, [*signs, ""], strict=True))
        text = self._side()
        for _ in range(self.pick((1, 2, 3))):
            text += self.pick((" AND ", " OR ", " = ", " <=> ", " < ", " != ")) + self._side()
        return text

    def _side(self) -> str:
        """Return a value that may be true, and may have a predicate behind it."""
        text = self.pick(("", "", "NOT ")) + self.pick(("b", "true", "i > 3", "n % 2 = 1", "s"))
        no = self.pick(("", "NOT "))
        return text + self.pick(
            ("", "", "", f" IS {no}NULL", f" IS {no}TRUE", f" {no}IN (true, false)",
             f" {no}BETWEEN b AND true", f" {no}LIKE '%a%'", " IS DISTINCT FROM b")
        )  # fmt: skip

    def extracted(self, depth: int) -> str:
        """Return a part of a time."""
        when = self.of(self.pick(("timestamp", "date")), depth)
        return f"extract({self.pick(PARTS)} FROM {when})"
