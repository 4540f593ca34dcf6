"""One file per API: what a broker does about a request."""
