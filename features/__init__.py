"""Programs as typed expressions, the proofs that make a recipe legal, and the versioned feature schemas. Pure."""
