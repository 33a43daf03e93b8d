"""Which profiles there are, which are active, and which of them and which target a question means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from attrs import frozen

from kernels.target import Target
from policy.judging import HOT
from policy.profile import EXPERIMENTAL, UNVALIDATED, Known, Profile, bundled_profiles, profile_from_document
from server.ask import Ask
from server.errors import Problem
from server.live import Live
from server.node import Node, node_of, receipt_node
from server.store import Store


@frozen(eq=False)
class Choice:
    """The profile and target of one question, and whether the target's receipts come from the live GPU."""

    profile: Profile
    target: Target
    live: Live | None


def profile_nodes(profile: Profile) -> Iterator[Node]:
    """Yield the node of a profile, listed under its target, and those of its receipts, which its selections link to."""
    node = node_of("profile", profile.document, parent=profile.target.digest())
    assert node.digest == profile.digest
    yield node
    yield from map(receipt_node, profile.receipts)


def bundled_nodes() -> list[Node]:
    """Return the nodes of the profiles that ship with the release; their validations come with their packets."""
    return [node for profile in bundled_profiles() for node in profile_nodes(profile)]


def known_profiles(store: Store) -> tuple[Known, ...]:
    """Return the stored profiles, oldest first, each with what the stored validations say of it."""
    standings: dict[str, str] = {}
    for stored in store.all_bodies("validation"):
        document = json.loads(stored.body)
        if standings.get(document["profile"]) != EXPERIMENTAL:  # one bad validation is enough
            standings[document["profile"]] = document["standing"]
    return tuple(
        Known(profile_from_document(json.loads(stored.body), stored.digest), standings.get(stored.digest, UNVALIDATED))
        for stored in store.all_bodies("profile")
    )


def choose(ask: Ask, known: Sequence[Known], live: Live | None) -> Choice:
    """Return the profile and target that a question means.

    Raises
    ------
    Problem : no profile or several would do; the profiles are listed.
    """
    target = _target(ask, known, live)
    profile = _named(ask.profile, known) if ask.profile else _fitting(ask.regime or HOT, known, target)
    if ask.regime not in (None, profile.regime):
        detail = f"profile {profile.name} is {profile.regime}, not {ask.regime}. {listing(known)}"
        raise Problem("profile_unknown", detail, field="regime")
    target = target or profile.target
    return Choice(profile, target, live if live is not None and live.target == target else None)


def _target(ask: Ask, known: Sequence[Known], live: Live | None) -> Target | None:
    if isinstance(ask.target, str):
        return _named(ask.target, known).target
    if ask.target is not None:
        return ask.target
    return None if live is None else live.target


def _named(name: str, known: Sequence[Known]) -> Profile:
    found = [entry.profile for entry in known if name in (entry.profile.name, entry.profile.digest)]
    if len(found) == 1:
        return found[0]
    what = "is not known" if not found else f"names {len(found)} profiles; use a digest"
    raise Problem("profile_unknown", f"profile {name!r} {what}. {listing(known)}", field="profile")


def _fitting(regime: str, known: Sequence[Known], target: Target | None) -> Profile:
    """Return the active profile of a regime that was made for the target, else the only one there is."""
    active = [entry.profile for entry in known if entry.active and entry.profile.regime == regime]
    exact = [profile for profile in active if target is not None and profile.target == target]
    for found in (exact, active):
        if len(found) == 1:
            return found[0]
        if found:
            detail = f"{len(found)} active profiles would answer for regime {regime}; name one. {listing(known)}"
            raise Problem("profile_unknown", detail, field="profile")
    raise Problem("profile_unknown", f"no active profile for regime {regime}. {listing(known)}", field="profile")


def listing(known: Sequence[Known]) -> str:
    """Return a sentence that lists the profiles."""
    rows = [f"{e.profile.name} ({e.profile.regime}, {e.standing}, {e.profile.digest[:12]})" for e in known]
    return f"Profiles: {', '.join(rows)}" if rows else "There are none; import a packet with `rowsmith packet import`"
