"""A place in a statement's tokens, and what is expected there."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from moldau.pipelines.sql.language.errors import SqlError, error_at
from moldau.pipelines.sql.language.lexing import Shape, Token


class Cursor:
    """Walks over the tokens of one statement; `text` is all that was read, for errors."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self._tokens = tokens
        self._index = 0

    @property
    def next(self) -> Token | None:
        """The token that comes now; None at the end of the statement."""
        return self._tokens[self._index] if self._index < len(self._tokens) else None

    @property
    def previous(self) -> Token:
        """The token that was taken last."""
        return self._tokens[self._index - 1]

    def at(self, *wanted: str) -> bool:
        """Return whether these words or marks come now."""
        coming = self._tokens[self._index : self._index + len(wanted)]
        return len(coming) == len(wanted) and all(
            (token.word or token.text) == each for token, each in zip(coming, wanted, strict=True)
        )

    def take(self, *wanted: str) -> bool:
        """Go behind these words or marks, if they come now."""
        if not self.at(*wanted):
            return False
        self._index += len(wanted)
        return True

    def expect(self, *wanted: str) -> None:
        """Go behind these words or marks, which must come now."""
        for each in wanted:
            if not self.take(each):
                self.fail(repr(each) if len(each) == 1 else each, known=[each])

    def choose(self, *words: str) -> str:
        """Take one of these words."""
        token = self.next
        if token is None or token.word not in words:
            self.fail(one_of(words), known=words)
        self._index += 1
        return token.word

    def advance(self) -> Token:
        """Take whatever comes; there must be something."""
        token = self._tokens[self._index]
        self._index += 1
        return token

    def take_rest(self) -> Sequence[Token]:
        """Take all that is there."""
        taken = self._tokens[self._index :]
        self._index = len(self._tokens)
        return taken

    def take_inside(self, opening: Token) -> Sequence[Token]:
        """Take what is between a bracket, which was taken, and the one that closes it."""
        begin = self._index
        while self._tokens[self._index].depth > opening.depth:
            self._index += 1
        return self._tokens[begin : self._index]

    def move(self, count: int) -> None:
        """Take that many tokens."""
        self._index += count

    def name(self, what: str) -> str:
        """Take a name: a word, or anything in backquotes."""
        token = self.next
        if token is None or token.shape not in (Shape.WORD, Shape.QUOTED) or not token.value:
            self.fail(what)
        return self.advance().value

    def string(self, what: str) -> str:
        """Take a string."""
        token = self.next
        if token is None or token.shape is not Shape.STRING:
            self.fail(what)
        return self.advance().value

    def count(self, what: str, *, least: int = 1) -> int:
        """Take a whole number above 0, or another least one."""
        token = self.next
        if token is None or not is_count(token, least=least):
            self.fail(what)
        return int(self.advance().text)

    def loose_name(self, what: str) -> str:
        """Take a name that may also be a string, or have dots and dashes as topics have."""
        token = self.next
        if token is not None and token.shape is Shape.STRING and token.value:
            return self.advance().value
        if token is not None and token.shape is Shape.NUMBER:
            parts = [self.advance().value]
        else:
            parts = [self.name(what)]
        while (token := self.next) is not None and token.start == self.previous.end:
            if token.text not in ("-", ".") and token.shape not in (Shape.WORD, Shape.NUMBER):
                break
            parts.append(self.advance().text)
        return "".join(parts)

    def end(self) -> None:
        """Insist that there is nothing more."""
        if self.next is not None:
            self.fail("';'")

    def fail(self, expected: str, *, known: Sequence[str] = ()) -> NoReturn:
        """Raise the error that something else was expected here."""
        token = self.next
        if token is None:
            last = self._tokens[-1].end
            raise error_at(
                self.text, last, last + 1, f"expected {expected}, found the end of the statement"
            )
        near = get_close_matches(token.text.upper(), known, 1)
        found = token.text if len(token.text) <= 40 else f"{token.text[:40]}..."
        raise self.error(
            f"expected {expected}, found {found!r}", token, near and f"did you mean {near[0]}?"
        )

    def error(self, message: str, token: Token, hint: str | list[str] | None = None) -> SqlError:
        """Return an error about one token."""
        return error_at(self.text, token.start, token.end, message, str(hint) if hint else None)


def is_count(token: Token, *, least: int = 1) -> bool:
    """Return whether it is a whole number above 0, or another least one, and not an absurd one."""
    text = token.text
    return text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least


def one_of(words: Sequence[str]) -> str:
    """Return words as a sentence has them: A, B or C."""
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"
