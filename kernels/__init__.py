"""Device code, the recipe table, compiling, live resource queries, guarded launches and the FP64 reference."""
