"""Vertices: the measured primary vertex, impact parameters, and the vertex of two tracks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.typing import Floats, Integers
from studies.trigger.simulation.detector.tracks import Tracks
from studies.trigger.simulation.parameters import Parameters


@dataclass(frozen=True, eq=False)
class Primary:
    """Measured primary vertices: positions (n, 3) and variances of x (and y) and of z."""

    position: Floats
    variance_xy: Floats
    variance_z: Floats

    def __getitem__(self, rows: Integers) -> Primary:
        return Primary(self.position[rows], self.variance_xy[rows], self.variance_z[rows])

    @property
    def covariance(self) -> Floats:
        diagonal = np.stack([self.variance_xy, self.variance_xy, self.variance_z], axis=1)
        return diagonal[:, :, None] * np.eye(3)


def primary(
    true: Floats, tracks: Integers, parameters: Parameters, rng: np.random.Generator
) -> Primary:
    """Measured vertices; errors fall with the root of the number of tracks, at least 5."""
    more = 25 / np.maximum(tracks, 5)
    xy, z = parameters.vertex_xy**2 * more, parameters.vertex_z**2 * more
    errors = np.sqrt(np.stack([xy, xy, z], axis=1)) * rng.normal(size=true.shape)
    return Primary(true + errors, xy, z)


def impact(tracks: Tracks, vertex: Primary) -> tuple[Floats, Floats]:
    r"""Impact parameters and their :math:`\chi^2`, of tracks with their primary vertices.

    .. math:: \chi^2_{IP} = \delta^T [(\sigma^2(z) + \sigma_{xy}^2) 1
              + \sigma_z^2\, t t^T]^{-1} \delta, \quad IP = |\delta| / \sqrt{1 + t^2}

    with the inverse by Sherman and Morrison.
    """
    z = vertex.position[:, 2]
    delta = tracks.at(z) - vertex.position[:, :2]
    a = tracks.variance(z) + vertex.variance_xy
    d2, t2 = (delta**2).sum(axis=1), (tracks.slope**2).sum(axis=1)
    along = (delta * tracks.slope).sum(axis=1)
    chi2 = d2 / a - vertex.variance_z * along**2 / (a * (a + vertex.variance_z * t2))
    return np.sqrt(d2 / (1 + t2)), chi2


def closest_approach(one: Tracks, two: Tracks) -> tuple[Floats, Floats]:
    """The distance of two lines, and the z of the middle where they are closest."""
    u, v = one.direction, two.direction
    w = np.column_stack([one.position - two.position, one.z - two.z])
    b, d, e = (u * v).sum(axis=1), (u * w).sum(axis=1), (v * w).sum(axis=1)
    parallel = np.maximum(1 - b * b, 1e-14)
    s, t = (b * e - d) / parallel, (e - b * d) / parallel
    apart = w + s[:, None] * u - t[:, None] * v
    z = 0.5 * (one.z + s * u[:, 2] + two.z + t * v[:, 2])
    return np.asarray(np.linalg.norm(apart, axis=1)), z


def fit(one: Tracks, two: Tracks, z: Floats) -> tuple[Floats, Floats, Floats]:
    """The common point of two tracks: position (n, 3), chi2 (one degree of freedom), covariance.

    Least squares on the residuals x_i + t_xi (z - z_i) - x, and the same in y, whose weights are
    taken at the last z; three iterations.
    """
    point: Floats = np.zeros((len(z), 3))
    covariance: Floats = np.zeros((len(z), 3, 3))
    for _ in range(3):
        matrix, vector = np.zeros((len(z), 3, 3)), np.zeros((len(z), 3))
        for track in (one, two):
            weight = 1 / track.variance(z)
            jacobian = np.zeros((len(z), 2, 3))
            jacobian[:, 0, 0] = jacobian[:, 1, 1] = 1.0
            jacobian[:, :, 2] = -track.slope
            start = track.at(np.zeros(len(z)))
            matrix += weight[:, None, None] * (jacobian.transpose(0, 2, 1) @ jacobian)
            vector += weight[:, None] * (jacobian.transpose(0, 2, 1) @ start[:, :, None])[..., 0]
        covariance = np.linalg.inv(matrix).astype(float)
        point = (covariance @ vector[:, :, None])[..., 0]
        z = point[:, 2]
    chi2 = np.zeros(len(z))
    for track in (one, two):
        residual = track.at(z) - point[:, :2]
        chi2 += (residual**2).sum(axis=1) / track.variance(z)
    return point, chi2, covariance
