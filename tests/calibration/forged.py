"""Contents as somebody forged them, and what verifying them names."""

from __future__ import annotations

from calibration.packet import Contents, pack, read
from calibration.verify import Finding, verify
from tests.calibration.planted import planted_contents

CONTENTS = planted_contents()


def found(contents: Contents) -> tuple[Finding, ...]:
    """Verify contents after a trip through a packet whose manifest accounts for them."""
    return verify(read(pack("forged", contents)))


def named(contents: Contents, part: str, *items: str) -> Finding:
    """Return the first finding of the part whose item holds all of the texts."""
    findings = found(contents)
    for finding in findings:
        if finding.part == part and all(item in finding.item for item in items):
            return finding
    raise AssertionError("\n".join(map(str, findings)) or "verified")
