"""Routes: each a handful of lines that parse, call and answer."""
