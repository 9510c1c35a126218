"""Channels: the 24 beauty and 17 charm decays, as lines that Pythia understands.

The codes are LHCb event types; where the public decay files do not define one, its digits were
read (`docs/trigger.md`). Phase space takes the place of amplitude models.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Channel:
    """One decay.

    Parameters
    ----------
    head : PDG number of the hadron that decays; its antiparticle decays likewise
    decays : "mother = daughters" for the head and for what decays further
    twin : the hadron whose kinematics it takes from the library; None for itself
    """

    code: int
    name: str
    head: int
    decays: tuple[str, ...]
    twin: int | None = None

    @property
    def is_beauty(self) -> bool:
        return self.code // 10_000_000 == 1

    @property
    def species(self) -> int:
        """The hadron of the library."""
        return self.head if self.twin is None else self.twin

    def settings(self) -> list[str]:
        """Lines for Pythia; a mode other than phase space stands in brackets."""
        lines = []
        for decay in self.decays:
            mother, _, daughters = decay.partition(" = ")
            mode = "0"
            if daughters.startswith("["):
                mode, _, daughters = daughters[1:].partition("] ")
            lines.append(f"{mother}:oneChannel = 1 1.0 {mode} {daughters}")
        return lines


_D0 = "421 = -321 211"
_DSTAR = "413 = 421 211"
_KSTAR0 = "313 = 321 -211"
_KSTAR = "323 = 321 111"
_KSHORT = "310 = 211 -211"
_LAMBDA = "3122 = 2212 -211"

BEAUTY_CHANNELS = (
    Channel(11104054, "B⁰→π⁺π⁻π⁺π⁻", 511, ("511 = 211 -211 211 -211",)),
    Channel(11104055, "B⁰→K⁺π⁻π⁺π⁻", 511, ("511 = 321 -211 211 -211",)),
    Channel(11104056, "B⁰→K⁺K⁻π⁺π⁻", 511, ("511 = 321 -321 211 -211",)),
    Channel(11104057, "B⁰→K⁺K⁻K⁺π⁻", 511, ("511 = 321 -321 321 -211",)),
    Channel(11104058, "B⁰→K⁺K⁻K⁺K⁻", 511, ("511 = 321 -321 321 -321",)),
    Channel(11164063, "B⁰→D̄⁰(Kπ)π⁺π⁻", 511, ("511 = -421 211 -211", _D0)),
    Channel(
        11166107,
        "B⁰→D̄⁰(K_Sπ⁺π⁻)K⁺π⁻",
        511,
        ("511 = -421 321 -211", "421 = 310 211 -211", _KSHORT),
    ),
    Channel(11196000, "B⁰→D⁰(Kπ)D̄⁰(Kπ)K*⁰", 511, ("511 = 421 -421 313", _D0, _KSTAR0)),
    Channel(11196011, "B⁰→D*⁻D⁰K⁺", 511, ("511 = -413 421 321", _DSTAR, _D0)),
    Channel(11196099, "B⁰→D⁰D̄⁰K⁺π⁻", 511, ("511 = 421 -421 321 -211", _D0)),
    Channel(11264011, "B⁰→D⁻(Kππ)K⁺", 511, ("511 = -411 321", "411 = -321 211 211")),
    Channel(11874004, "B⁰→D*⁻(D̄⁰π⁻)µ⁺ν", 511, ("511 = [22] 14 -13 -413", _DSTAR, _D0)),
    Channel(12103009, "B⁺→π⁺π⁺π⁻", 521, ("521 = 211 211 -211",)),
    Channel(12103019, "B⁺→K⁺K⁺K⁻", 521, ("521 = 321 321 -321",)),
    Channel(12103028, "B⁺→K⁺π⁺π⁻", 521, ("521 = 321 211 -211",)),
    Channel(12103038, "B⁺→π⁺K⁺K⁻", 521, ("521 = 211 321 -321",)),
    Channel(12103041, "B⁺→pp̄K⁺", 521, ("521 = 2212 -2212 321",)),
    Channel(12103051, "B⁺→pp̄π⁺", 521, ("521 = 2212 -2212 211",)),
    Channel(12103406, "B⁺→π⁺π⁺π⁻π⁰", 521, ("521 = 211 211 -211 111",)),
    Channel(12103422, "B⁺→K⁺π⁺π⁻π⁰", 521, ("521 = 321 211 -211 111",)),
    Channel(12103423, "B⁺→K*⁺(K⁺π⁰)π⁺π⁻", 521, ("521 = 323 211 -211", _KSTAR)),
    Channel(12103443, "B⁺→K⁺K⁻π⁺π⁰", 521, ("521 = 321 -321 211 111",)),
    Channel(12103445, "B⁺→K⁺K⁺K⁻π⁰", 521, ("521 = 321 321 -321 111",)),
    Channel(15364010, "Λb→Λc⁺(pK⁻π⁺)π⁻", 5122, ("5122 = 4122 -211", "4122 = 2212 -321 211")),
)

CHARM_CHANNELS = (
    Channel(21113000, "D⁺→π⁺µ⁺µ⁻", 411, ("411 = 211 -13 13",)),
    Channel(21163002, "D⁺→K⁻K⁺π⁺", 411, ("411 = -321 321 211",)),
    Channel(21163012, "D⁺→π⁻π⁺π⁺", 411, ("411 = -211 211 211",)),
    Channel(21163022, "D⁺→K⁻π⁺π⁺", 411, ("411 = -321 211 211",)),
    Channel(21163032, "D⁺→π⁻π⁺K⁺", 411, ("411 = -211 211 321",)),
    Channel(21163042, "D⁺→K⁻K⁺K⁺", 411, ("411 = -321 321 321",)),
    Channel(23103012, "Ds⁺→π⁻π⁺π⁺", 431, ("431 = -211 211 211",)),
    Channel(23103042, "Ds⁺→K⁻K⁺K⁺", 431, ("431 = -321 321 321",)),
    Channel(23103062, "Ds⁺→π⁻π⁺K⁺", 431, ("431 = -211 211 321",)),
    Channel(23163003, "Ds⁺→K⁻K⁺π⁺", 431, ("431 = -321 321 211",)),
    Channel(23163052, "Ds⁺→π⁻K⁺K⁺", 431, ("431 = -211 321 321",)),
    Channel(25113000, "Λc⁺→pµ⁺µ⁻", 4122, ("4122 = 2212 -13 13",)),
    Channel(
        26106182,
        "Ξc⁰→Ξ⁻π⁺π⁺π⁻",
        4132,
        ("4132 = 3312 211 211 -211", "3312 = 3122 -211", _LAMBDA),
        twin=4122,
    ),
    # of a D*⁺ only the D⁰: the slow pion is prompt and soft
    Channel(27163003, "D*⁺→D⁰(K⁻π⁺)π⁺", 421, (_D0,)),
    Channel(27173002, "D*⁺→D⁰(µ⁺µ⁻)π⁺", 421, ("421 = -13 13",)),
    Channel(27225003, "D*⁺→D⁰(π⁺π⁻e⁺e⁻)π⁺", 421, ("421 = 211 -211 -11 11",)),
    Channel(27375075, "D*⁺→D⁰(K⁻π⁺µe)π⁺", 421, ("421 = -321 211 -13 11",)),
)


def channels(n: int | None = None) -> tuple[Channel, ...]:
    """All channels, or `n` of each flavor, spread over the list."""
    if n is None:
        return BEAUTY_CHANNELS + CHARM_CHANNELS
    families = (BEAUTY_CHANNELS, CHARM_CHANNELS)
    return tuple(family[i * len(family) // n] for family in families for i in range(n))
