"""Scripts of requests that any broker can be asked, and the answers in a form to compare."""
