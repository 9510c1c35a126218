"""What every export says about itself and about the network it was made from."""

from __future__ import annotations

from typing import Any

import isotone
from isotone.export.claim import Claim
from isotone.frozen.network import FrozenNetwork

_KEPT = (
    *("precision", "metric", "clip", "grid", "lipschitz"),
    *("lipschitz_holds", "constants", "rounding_errors"),
)


def summary(frozen: FrozenNetwork, claim: Claim) -> dict[str, Any]:
    """Plain JSON content: what holds of the file, and which model it was made from."""
    certificate = claim.certificate.to_dict(in_short=True)
    return {
        "isotone": isotone.__version__,
        "fingerprint": frozen.fingerprint,
        "inputs": frozen.inputs.to_dict(),
        "features": list(frozen.features),
        "outputs": frozen.outputs,
        "classes": None if frozen.classes is None else list(frozen.classes),
        "monotonic_cst": frozen.monotonic_cst.tolist(),
        "certificate": claim.to_dict(),
        "model": {name: certificate[name] for name in _KEPT},
    }
