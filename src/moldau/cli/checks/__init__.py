"""What `moldau doctor` looks at, each thing with what to do about it."""
