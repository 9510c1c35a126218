r"""Blocks: columns of different ones do not interact, and are explained apart.

If :math:`f = \sum_k f_k` with :math:`f_k` a function of block k alone, as the certificate proves
(`isotone.certificate.interactions`), then Shapley values of a column are those of :math:`f_k`, so
that the sets of one block are enumerated, not those of all columns. For computed scores this is
true up to their rounding errors.
"""

from __future__ import annotations

from isotone.certificate.certify import Certificate
from isotone.explanation.outputs import Output


def blocks_of(certificate: Certificate, output: Output) -> list[list[int]]:
    """Numbers of columns that may interact, also through others; none of those without effect."""
    names = certificate.frozen.inputs.names
    groups = [{names.index(name) for name in group} for group in certificate.interactions]
    if not output.is_additive:
        groups = [set().union(*groups)] if groups else []
    blocks: list[set[int]] = []
    for group in groups:
        joined = [block for block in blocks if block & group]
        blocks = [block for block in blocks if not block & group]
        blocks.append(group.union(*joined))
    return sorted(sorted(block) for block in blocks)
