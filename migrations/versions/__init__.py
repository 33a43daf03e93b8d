"""One file a revision, each opened by a test that uses a real database of it."""
