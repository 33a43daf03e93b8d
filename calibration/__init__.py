"""Plan, measure, check, fit, cross-validate, validate, pack and verify; needs no web or database library."""
