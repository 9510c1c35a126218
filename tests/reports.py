"""Models and tables for the tests of reports, and a look into what a report holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotone import FrozenNetwork
from networks import small

EVIL = "</script><script>hacked=1</script><img src=x onerror=hacked=1>&\"'"


def two_classes(seed: int = 0, **options: Any) -> FrozenNetwork:
    names = options.pop("features", ("income", "debt", "age"))
    frozen = small((1, -1, 0), seed=seed, features=names)
    return replace(frozen, outputs="logits", **options)


def rows(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["income", "debt", "age"])
    X["paid"] = (X["income"] - X["debt"] + rng.normal(size=n) > 0).astype(int)
    X["weight"] = rng.integers(1, 4, n).astype(float)
    X["city"] = rng.choice(["Rome", "Oslo"], n)
    X["id"] = [f"p{i}" for i in range(n)]
    return X


def content(path: Path) -> dict[str, Any]:
    """The data that a report holds."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data
