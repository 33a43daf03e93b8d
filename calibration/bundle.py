"""Making packets part of this release: `python -m calibration.bundle packet.zip …` writes the files each becomes.

The packet itself, the profile file that a decision without a database reads, the validation's page and the maps in
`docs/`, all by the packet's name: `h200`, `h200-cold`. Where it has experimental recipes, the page of the experiments
is made from it too. A packet that does not verify is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path

from calibration import experiments
from calibration.errors import CalibrationError
from calibration.freeze import wrapper
from calibration.maps import maps
from calibration.packet import read
from calibration.packetjson import to_json
from calibration.page import page
from calibration.verify import verify

ROOT = Path(__file__).resolve().parent.parent


def bundle(file: Path, root: Path = ROOT) -> tuple[Path, ...]:
    """Write the files of a validated packet below `root` and return their paths.

    Raises
    ------
    PacketError, CalibrationError : the packet is damaged, does not verify, or holds no validated profile.
    """
    packet = read(file)
    if findings := verify(packet):
        raise CalibrationError(f"{file} does not verify, first: {findings[0]}")
    contents = packet.contents
    if contents.profile is None or contents.validation is None:
        raise CalibrationError(f"{file} holds no validated profile; finish the calibration first")
    name = packet.name
    written = {
        root / "calibration" / "packets" / f"{name}.zip": file.read_bytes(),
        root / "policy" / "profiles" / f"{name}.json": to_json(
            wrapper(contents.profile, contents.validation["standing"])
        )
        + b"\n",
        root / "docs" / f"validation-{name}.md": page(packet).encode(),
        **{root / "docs" / file: drawn.encode() for file, drawn in (maps(packet) | experiments.pages(packet)).items()},
    }
    for path, data in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tuple(written)


def main(arguments: list[str], root: Path = ROOT) -> None:
    """Bundle each packet, or end with one line that says why not."""
    if not arguments:
        sys.exit("error: name a packet, as in `python -m calibration.bundle packet.zip`")
    try:
        for argument in arguments:
            for path in bundle(Path(argument), root):
                print(path.relative_to(root))
    except (CalibrationError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
