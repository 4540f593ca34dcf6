"""What a run shows that no run may show."""


class LawViolation(AssertionError):  # noqa: N818 - what is broken is a law, not a program
    """A law is broken; says which, and by what."""

    def __init__(self, law: str, text: str) -> None:
        super().__init__(law, text)
        self.law = law
        self.text = text

    def __str__(self) -> str:
        return f"{self.law}: {self.text}"
