"""The decision: one pure function from a workload, a target, a profile and receipts to a `Selection`."""

from __future__ import annotations

from features.errors import Refused
from features.proof import Proved, candidates
from features.schema import point
from features.workload import Workload
from kernels.target import Target
from policy.catalogue import Catalogue, ReceiptSource, recorded, shipped_catalogue
from policy.deciding import ADMISSION, Findings, changed, covers, steps
from policy.errors import RequestError
from policy.explain import Story, sentence
from policy.profile import Fit, Profile
from policy.scoring import outside, score
from policy.selection import Candidate, Decision, Priced, Provenance, Selection, selection
from policy.standing import Standing, standing

__all__ = ["ADMISSION", "Catalogue", "ReceiptSource", "recorded", "score", "select", "shipped_catalogue"]


def select(
    workload: Workload,
    target: Target,
    profile: Profile,
    receipts: ReceiptSource,
    *,
    catalogue: Catalogue | None = None,
    forced: str | None = None,
) -> Selection:
    """Choose a recipe for the workload and say why; the same inputs give the same bytes in every process.

    Parameters
    ----------
    receipts : asked once for each recipe that is proved, in catalogue order, the original first.
    forced : a recipe id to run instead of the policy's pick; it must be proved and have a clean receipt.

    Raises
    ------
    ProgramError : no kernel runs the program.
    PolicyError : the original cannot be compiled.
    RequestError : the forced recipe is unknown, of another program, not legal here or without a clean receipt.
    """
    catalogue = catalogue or shipped_catalogue()
    judged = candidates(workload)
    fit = profile.fit(judged[0][0].form)
    differences = profile.target.differences(target)
    usable = None if differences else fit
    seen = []
    for recipe, proof in judged:
        if isinstance(proof, Refused):
            seen.append(Candidate(recipe, proof))
        else:
            stands = standing(recipe, workload.dtype, target, profile, usable, receipts, catalogue)
            seen.append(_candidate(workload, target, stands, proof, priced=usable is not None))
    decision = _decide(workload, profile, fit, tuple(seen), differences, catalogue)
    if forced is not None:
        decision = _force(tuple(seen), decision, forced)
    provenance = Provenance(
        profile=profile.digest,
        profile_name=profile.name,
        regime=profile.regime,
        fit=None if fit is None else fit.digest,
        cohort=None if fit is None else fit.cohort,
        feature_schema=None if fit is None else fit.feature_schema,
        feature_schema_digest=None if fit is None else fit.feature_schema_digest,
        catalogue=catalogue.digest,
        admission=ADMISSION,
    )
    return selection(workload, target, provenance, decision, tuple(seen))
