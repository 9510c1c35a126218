"""The detector model of the trigger study: geometry, errors that are as believed, vertices."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import stats

from isotone.typing import Floats
from studies.trigger.simulation.candidates import CHARM, MIXED, corrected_mass, labels, pairs
from studies.trigger.simulation.checks import resolution
from studies.trigger.simulation.detector.ghosts import make_ghosts
from studies.trigger.simulation.detector.material import interactions
from studies.trigger.simulation.detector.tracks import Tracks, crossings, reconstruct
from studies.trigger.simulation.detector.vertices import closest_approach, fit, impact, primary
from studies.trigger.simulation.parameters import PLANES, Parameters
from studies.trigger.simulation.particles import Particles, Source

PARAMETERS = Parameters()
PERFECT = replace(PARAMETERS, hit_error=1e-9, scattering=1e-12, tail_share=0.0)


def pions(n: int, origin: Floats | None = None, seed: int = 0) -> Particles:
    """Charged pions of all directions and momenta; each its own collision."""
    rng = np.random.default_rng(seed)
    eta, phi = rng.uniform(2.1, 4.9, n), rng.uniform(0.0, 2 * np.pi, n)
    pt = rng.exponential(1.0, n) + 0.5
    momentum = pt[:, None] * np.stack([np.cos(phi), np.sin(phi), np.sinh(eta)], axis=1)
    start = np.zeros((n, 3)) if origin is None else origin
    zeros = np.zeros(n, np.int64)
    return Particles(np.arange(n), zeros + 211, momentum, start, zeros, zeros - 1)


def tracks_of(particles: Particles, parameters: Parameters = PARAMETERS, seed: int = 1) -> Tracks:
    return reconstruct(particles, parameters, np.random.default_rng(seed))[0]


def test_planes_are_crossed_where_the_line_is_in_the_ring() -> None:
    origin = np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 100.0]])
    slope = np.array([[0.1, 0.0], [0.03, 0.04]])
    crossed = crossings(origin, slope, PARAMETERS)
    for row in range(2):
        for plane, z in enumerate(PLANES):
            x, y = origin[row, :2] + slope[row] * (z - origin[row, 2])
            expected = z > origin[row, 2] and 5.1 < np.hypot(x, y) < 42.0
            assert crossed[row, plane] == expected
    assert crossed.any(axis=1).all()


def test_a_long_track_is_fast_and_crosses_three_planes() -> None:
    everything = replace(PARAMETERS, track_efficiency=1.0)
    particles = pions(3000)
    tracks = tracks_of(particles, everything)
    enough = crossings(particles.origin, particles.slopes, everything).sum(axis=1) >= 3
    assert set(tracks.particle) == set(np.flatnonzero(enough & (particles.p > 3)))
    neutral = replace(particles, pdg=np.full(3000, 2112))
    assert len(tracks_of(neutral)) == 0


def test_the_impact_parameter_is_better_measured_for_faster_tracks() -> None:
    widths = [resolution(pt) for pt in (0.3, 0.6, 1.0, 2.0, 3.0)]
    assert all(slow > fast for slow, fast in pairwise(widths))
    assert 0.020 < widths[2] < 0.024


def test_prompt_impact_chi2_is_chi2_of_two_without_tails() -> None:
    tracks = tracks_of(pions(6000), replace(PARAMETERS, tail_share=0.0))
    n = np.full(6000, 40)
    vertex = primary(np.zeros((6000, 3)), n, PARAMETERS, np.random.default_rng(2))
    _, chi2 = impact(tracks, vertex[tracks.collision])
    assert stats.kstest(chi2, stats.chi2(2).cdf).pvalue > 1e-3
    tailed = tracks_of(pions(6000))
    assert np.mean(impact(tailed, vertex[tailed.collision])[1] > 20) > 5 * np.mean(chi2 > 20)


def test_impact_chi2_is_the_formula_with_the_explicit_inverse() -> None:
    tracks = tracks_of(pions(50))
    all_vertices = primary(np.zeros((50, 3)), np.full(50, 9), PARAMETERS, np.random.default_rng(3))
    vertex = all_vertices[tracks.collision]
    _, chi2 = impact(tracks, vertex)
    for i in range(len(tracks)):
        z = vertex.position[i : i + 1, 2]
        t, delta = tracks.slope[i], tracks[[i]].at(z)[0] - vertex.position[i, :2]
        spread = (tracks[[i]].variance(z)[0] + vertex.variance_xy[i]) * np.eye(2)
        spread = spread + vertex.variance_z[i] * np.outer(t, t)
        assert chi2[i] == pytest.approx(delta @ np.linalg.inv(spread) @ delta)


def decay_pairs(n: int, parameters: Parameters) -> tuple[Tracks, Tracks, Floats]:
    """Two tracks from each of some points."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(n, 3)) * [0.5, 0.5, 20.0]
    found = [tracks_of(pions(n, points, seed), parameters, seed) for seed in (5, 6)]
    rows = np.intersect1d(found[0].particle, found[1].particle)
    one, two = (t[np.searchsorted(t.particle, rows)] for t in found)
    return one, two, points[rows]


def test_tracks_without_errors_meet_where_they_start() -> None:
    one, two, points = decay_pairs(300, PERFECT)
    distance, z = closest_approach(one, two)
    np.testing.assert_allclose(distance, 0.0, atol=1e-4)
    np.testing.assert_allclose(z, points[:, 2], atol=0.05)
    fitted, chi2, _ = fit(one, two, z)
    np.testing.assert_allclose(fitted, points, atol=0.05)
    assert (chi2 < 20).mean() > 0.99


def test_the_vertex_has_one_degree_of_freedom_and_honest_errors() -> None:
    one, two, points = decay_pairs(6000, replace(PARAMETERS, tail_share=0.0))
    fitted, chi2, covariance = fit(one, two, closest_approach(one, two)[1])
    assert stats.kstest(chi2, stats.chi2(1).cdf).pvalue > 1e-3
    off = fitted - points
    pulls = (off * np.linalg.solve(covariance, off[:, :, None])[..., 0]).sum(axis=1)
    assert np.median(pulls) == pytest.approx(stats.chi2(3).median(), rel=0.05)


def test_pairs_are_all_pairs_of_a_collision_but_no_clones() -> None:
    tracks = tracks_of(pions(60), PERFECT)
    n = len(tracks)
    tracks = replace(tracks, collision=np.sort(np.arange(n) % 7), particle=np.arange(n) // 2)
    close = replace(PARAMETERS, max_doca=np.finfo(float).max, min_sum_pt=0.0)
    expected = {
        (i, j)
        for i, j in combinations(range(n), 2)
        if tracks.collision[i] == tracks.collision[j] and tracks.particle[i] != tracks.particle[j]
    }
    found = list(zip(*(rows.tolist() for rows in pairs(tracks, close)), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected
    one, two = pairs(tracks, PARAMETERS)
    assert (closest_approach(tracks[one], tracks[two])[0] < PARAMETERS.max_doca).all()
    assert len(pairs(tracks[:0], PARAMETERS)[0]) == 0


def test_labels_say_whether_the_hadron_is_the_same() -> None:
    tracks = tracks_of(pions(40))[:4]
    one = replace(tracks, heavy=np.array([3, 3, 3, -1]), source=np.full(4, int(Source.CHARM)))
    two = replace(one, heavy=np.array([3, 4, -1, -1]))
    label, hadron = labels(one, two)
    assert label.tolist() == [CHARM, MIXED, 0, 0]
    assert hadron.tolist() == [3, -1, -1, -1]


def test_the_corrected_mass_of_a_full_decay_is_its_mass() -> None:
    mass, pion = 5.28, 0.13957
    p = np.sqrt(mass**2 / 4 - pion**2)
    along_z = 10 * p * 0.6 * np.array([1, -1]) + np.sqrt(99) * mass / 2  # boosted by gamma = 10
    one, two = (
        np.array([[side * p * 0.8, 0.0, pz]]) for side, pz in zip((1, -1), along_z, strict=True)
    )
    along = corrected_mass(one, two, np.array([[0.0, 0.0, 7.0]]))
    assert along[0] == pytest.approx(mass, rel=1e-6)
    aside = corrected_mass(one, two, np.array([[1.0, 0.0, 7.0]]))
    assert aside[0] > mass


def test_hadrons_interact_as_often_as_the_depth_says_and_in_material() -> None:
    thick = replace(PARAMETERS, module=20.0, foil=10.0)
    particles = pions(20_000)
    rows, points = interactions(particles, thick, np.random.default_rng(7))
    planes = crossings(particles.origin, particles.slopes, thick).sum(axis=1)
    r_last = np.hypot(*particles.slopes.T) * PLANES[-1]
    foil = r_last > 5.1
    depth = planes * 20.0 / 590.0 + foil * 10.0 / 500.0
    fast = particles.p > 3
    expected = -np.expm1(-depth[fast]).sum()
    assert len(rows) == pytest.approx(expected, abs=5 * np.sqrt(expected))
    radius = np.hypot(*points.T[:2])
    module = np.isin(points[:, 2], PLANES)
    assert ((radius[~module] > 3.5) & (radius[~module] < 5.1)).all()
    assert ((radius[module] > 5.1) & (radius[module] < 42.0)).all()
    assert 0 < module.mean() < 1
    muons = replace(particles, pdg=np.full(20_000, 13))
    assert len(interactions(muons, thick, np.random.default_rng(7))[0]) == 0


def test_ghosts_believe_their_made_up_momentum() -> None:
    many = replace(PARAMETERS, ghosts=3.0, false_share=0.0)
    particles = replace(pions(4000), collision=np.arange(4000) // 10)
    rng = np.random.default_rng(8)
    long, found = reconstruct(particles, many, rng)
    ghosts = make_ghosts(long, found, 400, many, rng)
    assert len(ghosts) == pytest.approx(3.0 * len(long), rel=0.05)
    assert (ghosts.p >= 3.0).all()
    assert (ghosts.p <= 200.0).all()
    assert stats.kstest((1 / ghosts.p - 1 / 200) / (1 / 3 - 1 / 200), "uniform").pvalue > 1e-3
    assert (ghosts.source == Source.GHOST).all()
    assert (np.diff(ghosts.collision) >= 0).all()
    assert (ghosts.slope_variance > (many.scattering / ghosts.p) ** 2).all()
    same = found[np.searchsorted(found.particle, ghosts.particle)]
    np.testing.assert_array_equal(ghosts.slope, same.slope)
    hits = same.slope_variance - (many.scattering / same.p) ** 2
    np.testing.assert_allclose(
        ghosts.slope_variance - (many.scattering / ghosts.p) ** 2, hits, atol=1e-12
    )
    false = make_ghosts(long, found, 400, replace(many, false_share=1.0), np.random.default_rng(9))
    same = found[np.searchsorted(found.particle, false.particle)]
    kick = np.linalg.norm(false.slope - same.slope, axis=1)
    assert kick.mean() == pytest.approx(many.false_kick, rel=0.1)


def test_without_ghosts_there_are_none() -> None:
    rng = np.random.default_rng(0)
    long, found = reconstruct(pions(100), PARAMETERS, rng)
    assert len(make_ghosts(long, found, 100, replace(PARAMETERS, ghosts=0.0), rng)) == 0
