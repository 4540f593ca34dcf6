"""Groups on their way between the classic and the consumer protocol, while members stay."""
