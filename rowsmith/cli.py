"""The command `rowsmith`. Each command imports what it needs when it runs, so that none needs what another does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Picks GPU kernel recipes, and shows why.")
db = typer.Typer(no_args_is_help=True, help="The database of the service.")
packet = typer.Typer(no_args_is_help=True, help="Evidence packets.")
app.add_typer(db, name="db")
app.add_typer(packet, name="packet")

PacketFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A packet.")]


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the errors of our rooms into one line on standard error and exit status 1."""
    from calibration.errors import CalibrationError
    from features.errors import FeatureError
    from kernels.errors import KernelError
    from policy.errors import PolicyError

    try:
        yield
    except (CalibrationError, FeatureError, KernelError, PolicyError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


@app.command()
def select(
    op: Annotated[str, typer.Argument(help="Such as scan, sum or rmsnorm_gamma; another name lists them all.")],
    shape: Annotated[str, typer.Argument(help="Extents, such as 128x8192.")],
    dtype: Annotated[str, typer.Argument(help="float16, bfloat16 or float32.")],
    profile: Annotated[str | None, typer.Option(help="Name or digest of a bundled profile.")] = None,
    target: Annotated[str | None, typer.Option(help="live, a profile's name, or a JSON file of target facts.")] = None,
    regime: Annotated[str | None, typer.Option(help="hot or cold; hot where no profile is named.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Force this recipe.")] = None,
    numerics: Annotated[str, typer.Option(help="any or bit_equal.")] = "any",
    alignment: Annotated[int, typer.Option(help="Bytes that divide every base address.")] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole selection.")] = False,
) -> None:
    """Choose a recipe for a shape and say why. Needs no GPU."""
    with _explained():
        import rowsmith
        from rowsmith.show import selection_table
        from rowsmith.targets import target_from

        made = rowsmith.select(
            op,
            _extents(shape),
            dtype,
            profile=profile,
            target=None if target is None else target_from(target),
            regime=regime,
            recipe=recipe,
            numerics=numerics,
            alignment_bytes=alignment,
        )
        if as_json:
            typer.echo(json.dumps({"id": made.id, **made.facts}, indent=2))
        else:
            selection_table(made)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Loopback address; ROWSMITH_HOST otherwise.")] = None,
    port: Annotated[int | None, typer.Option(help="TCP port; ROWSMITH_PORT otherwise.")] = None,
) -> None:
    """Serve the REST API."""
    from server import cli

    cli.serve(host, port)


@db.command()
def upgrade() -> None:
    """Create the database, or bring it to this release's schema."""
    from server import cli

    cli.db_upgrade()


@db.command("verify")
def db_verify(
    count: Annotated[int | None, typer.Option(help="The count of a head kept earlier.")] = None,
    head: Annotated[str | None, typer.Option(help="That head.")] = None,
) -> None:
    """Walk the hash chain over all stored rows."""
    from server import cli

    cli.db_verify(count, head)


@app.command()
def calibrate(
    out: Annotated[Path, typer.Option(help="The packet to write.")] = Path("packet.zip"),
    name: Annotated[str, typer.Option(help="The profile's name.")] = "local",
    folder: Annotated[Path, typer.Option(help="Journal and frozen profile; a second call resumes here.")] = Path(
        "calibration-run"
    ),
    go_on: Annotated[
        Path | None,
        typer.Option("--from", help="A packet whose records fill the folder first; only what they lack is run."),
    ] = None,
    ops: Annotated[
        list[str] | None, typer.Option("--op", help="Program to calibrate; may be repeated, all when omitted.")
    ] = None,
    regime: Annotated[str, typer.Option(help="hot: the same buffers; cold: rotated past twice L2.")] = "hot",
    inventory: Annotated[str | None, typer.Option(help="Tables to draw the plan from: documented or wide.")] = None,
    inventory_seed: Annotated[
        int | None, typer.Option(help="Judge on another inventory over the same training set.")
    ] = None,
    learnt: Annotated[
        list[int] | None,
        typer.Option(
            "--learn-from", help="Seed of an inventory that judged an earlier fit: it joins the training set."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the plan and of every input.")] = 20261130,
    peers: Annotated[bool, typer.Option(help="Time torch eager, torch.compile and a copy beside the picks.")] = True,
    budget_s: Annotated[
        float | None, typer.Option(help="Stop after this many seconds; resume with the same call.")
    ] = None,
) -> None:
    """Measure this GPU, fit, freeze a profile, validate it and write the packet: docs/calibrating.md."""
    with _explained():
        from calibration.plan import INVENTORY
        from calibration.sweep import Options
        from calibration.sweep import calibrate as run
        from features.program import OPS
        from kernels import driver
        from rowsmith.live import Dispatcher

        device = driver.current_device()
        target = driver.live_target(device)
        if go_on is not None:
            from calibration.unpack import unpack

            unpack(go_on, folder, {"seed": seed, "regime": regime})
        options = Options(
            ops=tuple(ops or OPS),
            name=name,
            folder=folder,
            out=out,
            seed=seed,
            peers=peers,
            budget_s=budget_s,
            regime=regime,
            inventory=inventory or INVENTORY,
            inventory_seed=inventory_seed,
            learnt_seeds=tuple(learnt or ()),
        )
        written = run(options, lambda profile: Dispatcher(device, target, profile).ready)
        typer.echo(f"wrote {written}; check it with: rowsmith packet verify {written}")


@app.command("map")
def draw_map(
    file: PacketFile,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("docs"),
) -> None:
    """Draw a packet's picks and regrets over rows and width, two SVG files for every program."""
    with _explained():
        from calibration.maps import maps
        from calibration.packet import read

        out.mkdir(parents=True, exist_ok=True)
        for name, drawn in maps(read(file)).items():
            (out / name).write_text(drawn, encoding="utf-8")
            typer.echo(str(out / name))


@packet.command("verify")
def packet_verify(file: PacketFile) -> None:
    """Re-do the arithmetic of a packet: digests, medians, features, fits, selections, figures."""
    with _explained():
        from calibration.compare import told
        from calibration.packet import read
        from calibration.verify import notes, verify

        held = read(file)
        findings = verify(held)
        for line in told(findings):
            typer.echo(line)
        for note in notes(held):
            typer.echo(f"note: {note}")
        if findings:
            typer.echo(f"{len(findings)} differences in packet {held.digest}", err=True)
            raise typer.Exit(1)
        typer.echo(f"verified: packet {held.digest}")


@packet.command("import")
def packet_import(file: PacketFile) -> None:
    """Verify a packet and store its evidence and profile in the database."""
    from server import cli

    cli.packet_import(file)


@packet.command("show")
def packet_show(file: PacketFile) -> None:
    """Print what a packet holds, and the validation's figures."""
    with _explained():
        from calibration.packet import read
        from rowsmith.show import packet_tables

        packet_tables(read(file))


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False) -> None:
    """Tell what this machine has, what is missing and what to do about it."""
    from rowsmith.doctor import checks, worst
    from rowsmith.show import doctor_table

    found = checks()
    if as_json:
        typer.echo(json.dumps([check.facts() for check in found], indent=2))
    else:
        doctor_table(found)
    raise typer.Exit(worst(found))


def _extents(text: str) -> list[int]:
    """Read `128x8192`; what is no whole number stays text, for the shape's own check to name."""
    parts = text.lower().split("x")
    return [int(part) if part.isascii() and part.isdecimal() and len(part) < 32 else part for part in parts]  # type: ignore[misc]


def main() -> None:
    """Run the command."""
    app()
