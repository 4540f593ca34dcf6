"""Keys and values between bytes and columns: what a record's bytes mean to Spark."""
