"""Questions that are answered here and now, by an embedded engine: no Spark is started for them."""
