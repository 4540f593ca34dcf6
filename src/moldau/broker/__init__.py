"""The broker: connections, requests and their answers, without I/O."""
