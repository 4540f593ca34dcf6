"""Raw bytes, text and numbers, as Java's own serializers write them; whole columns at once."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from moldau.pipelines.decoding.decoder import Decoded, decode_rows


class RawDecoder:
    """Bytes as they are."""

    arrow_type: Final = pa.binary()

    def decode(self, column: pa.Array) -> Decoded:
        """Return the column itself."""
        return Decoded(column, {})


class StringDecoder:
    """Text in UTF-8."""

    arrow_type: Final = pa.string()

    def decode(self, column: pa.Array) -> Decoded:
        """Return texts; bytes that are not UTF-8 do not decode."""
        try:
            return Decoded(column.cast(pa.string()), {})
        except pa.ArrowInvalid:
            return decode_rows(column, bytes.decode, lambda texts: pa.array(texts, pa.string()))


@dataclass(frozen=True, slots=True)
class NumberDecoder:
    """Numbers of a fixed width, big-endian."""

    name: str
    arrow_type: pa.DataType
    numpy_type: str

    def decode(self, column: pa.Array) -> Decoded:
        """Return numbers; whatever has another width does not decode."""
        import pyarrow.compute as pc  # noqa: PLC0415 - the driver's processes have no use for it

        width = np.dtype(self.numpy_type).itemsize
        lengths = pc.binary_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
        is_right = lengths == width
        packed = column.filter(pa.array(is_right)).cast(pa.binary(width))
        # A number that is left out stays 0 under the mask.
        numbers = np.zeros(len(column), self.arrow_type.to_pandas_dtype())
        numbers[is_right] = np.frombuffer(
            packed.buffers()[1] or b"", self.numpy_type, len(packed), packed.offset * width
        )
        reasons = {
            int(place): f"{lengths[place]} bytes, {self.name} has {width}"
            for place in np.flatnonzero(~is_right & (lengths >= 0))
        }
        return Decoded(pa.array(numbers, self.arrow_type, mask=~is_right), reasons)


NUMBERS: Final = {
    "int": NumberDecoder("int", pa.int32(), ">i4"),
    "long": NumberDecoder("long", pa.int64(), ">i8"),
    "float": NumberDecoder("float", pa.float32(), ">f4"),
    "double": NumberDecoder("double", pa.float64(), ">f8"),
}
