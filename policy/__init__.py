"""Frozen profiles, scoring, admission, the decision and its explanation. Pure, but for asking a receipt source."""
