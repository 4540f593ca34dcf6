"""What stands in for the Python of Spark's workers on a local master."""
