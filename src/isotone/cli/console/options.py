"""Options: those that several commands share, how one lists names and numbers, and hints."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperOption

from isotone.checks import check_frequency, check_positive, suggest
from isotone.cli.console.groups import panel_of
from isotone.inputs.chain import Policy, Rule, check_policy
from isotone.inputs.scaling import Kind

Names = str | Sequence[str] | None  # an option with commas, or one that was given several times

TablePath = Annotated[str, typer.Argument(help="CSV, Parquet or ROOT (file.root:tree).")]
Features = Annotated[
    list[str] | None, typer.Option(help="Columns a,b,...; default: all but an index.")
]
InteractionCst = Annotated[
    list[str] | None,
    typer.Option(help="Features that may interact: a,b; no_interactions; pairwise."),
]
ScalingOption = Annotated[
    list[str] | None,
    typer.Option(help="auto, none, standard, robust or log, or by column: a=none,b=log."),
]
MaxIter = Annotated[int, typer.Option(min=1, help="Maximum number of passes over the rows.")]

ON_UNSEEN = typer.Option(help="Rows unlike any in training: error, missing, skip or a score.")

RENAMED = {  # since 0.1
    "--epochs": "--max-iter",
    "--hidden": "--hidden-layer-sizes",
    "--members": "--n-members",
    "--seed": "--random-state",
}

_KINDS = {"none": "identity"} | {kind: kind for kind in ("auto", *get_args(Kind))}

_QUOTED = r'"(?:[^"]|"")*"'
_NAME = re.compile(rf"(?:^|(?<=[:=]))({_QUOTED})(?=$|[:=])")


class Command(TyperCommand):
    """A command that knows the former names of its options.

    Its help fills the lines, and shows options in groups.
    """

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:
        """What a command does and an example come first, then options, then all else.

        Paragraphs of the docstring are wrapped by the terminal, not where the source ends.
        """
        paragraphs = inspect.cleandoc(help or "").split("\n\n")
        first, *more = (" ".join(text.split()) for text in paragraphs)
        examples = [text for text in more if text.startswith(("For example", "isotone "))]
        super().__init__(*args, help="\n\n".join([first, *examples]) or None, **options)
        self.epilog = "\n\n".join(text for text in more if text not in examples) or None
        for option in (each for each in self.params if isinstance(each, TyperOption)):
            option.rich_help_panel = option.rich_help_panel or panel_of(self.name, option.name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for parameter in self.params for name in parameter.opts}
        for name in (word.partition("=")[0] for word in args):
            now = RENAMED.get(name)
            if name not in known and now in known:
                raise ValueError(f"`{name}` is an option of isotone 0.1; write `{now}` instead")
        return super().parse_args(ctx, args)


def policy_of(text: str) -> Policy:
    """What `--on-unseen` says: a word, or the score of such rows."""
    try:
        return check_policy(text if text in get_args(Rule) else float(text))
    except ValueError as error:
        raise ValueError(
            f"`--on-unseen {text}` is unknown; choose error, missing, skip, or give a finite score"
        ) from error


def pieces_of(text: str) -> int | str | None:
    """What `--knots` says: a number of pieces, none, or auto."""
    if text in ("none", "auto"):
        return None if text == "none" else text
    if not text.isdecimal() or int(text) < 2:
        raise ValueError(
            f"`--knots {text}` must be a whole number of at least 2, none or auto; choose auto"
        )
    return int(text)


def scaling_of(
    text: Names, columns: Sequence[str], otherwise: str = "auto"
) -> tuple[Any, dict[str, Any]]:
    """What `--scaling` says: the scaling of all columns, and of those that have their own.

    >>> scaling_of("none, sum_pt=standard", ["sum_pt", "mass"])
    ('identity', {'sum_pt': 'standard'})
    """
    every: list[str] = []
    own: dict[str, str] = {}
    for part in listed(text):
        name, mark, kind = part.rpartition("=")
        name = name if name in columns else name.strip()
        if kind.strip() not in _KINDS or (name in own if mark else every):
            raise ValueError(
                f"`--scaling {part}` must be one of {', '.join(_KINDS)}, once for all columns, or "
                "once for a column; write `--scaling none` or `--scaling a=log,b=none`, for "
                "example"
            )
        if mark:
            own[name] = _KINDS[kind.strip()]
        else:
            every.append(_KINDS[kind.strip()])
    return every[0] if every else otherwise, own


def frequency_of(text: str) -> int | float:
    """What `--min-frequency` says: a number of rows, or a share of them."""
    number: Any = text
    with suppress(ValueError):
        number = int(text) if text.isdecimal() else float(text)
    return check_frequency("--min-frequency", number)


def listed(text: Names) -> tuple[str, ...]:
    """Names or numbers separated by commas, from an option that may be repeated.

    As in a CSV file, a name with a comma or with spaces around it is put in double quotes.

    >>> listed('income, "debt, total":good')
    ('income', 'debt, total:good')
    """
    texts = [text] if isinstance(text, str) else text or ()
    parts = [part.strip() for text in texts for part in _split(text, ",")]
    return tuple(_NAME.sub(_unquoted, part) for part in parts if part)


def orders_of(text: Names) -> dict[str, tuple[str, ...]]:
    """Categories from the lowest to the highest by column, from an option that may be repeated.

    >>> orders_of('size=S<M<L, "age, years"="<30"<30-50<">50"')
    {'size': ('S', 'M', 'L'), 'age, years': ('<30', '30-50', '>50')}
    """
    found: dict[str, tuple[str, ...]] = {}
    texts = [text] if isinstance(text, str) else text or ()
    for part in (part for text in texts for part in _split(text, ",")):
        column = _split(part, "=")[0]
        names = [_NAME.sub(_unquoted, n.strip()) for n in _split(part[len(column) + 1 :], "<")]
        name = _NAME.sub(_unquoted, column.strip())
        if len(names) < 2 or len(set(names)) < len(names) or "" in names or name in found:
            raise ValueError(
                f"`--ordered {part}` must name a column once, and at least two different "
                "categories from the lowest to the highest; write "
                "`--ordered 'size=small<medium<large'`, for example"
            )
        found[name] = tuple(names)
    return found


def rates_of(text: str, option: str) -> dict[str, float]:
    """Numbers by column.

    >>> rates_of('income=1,debt=-1', "joint-cst")
    {'income': 1.0, 'debt': -1.0}
    """
    found = {}
    for part in listed(text):
        name, _, number = part.rpartition("=")
        try:
            rate = float(number)
        except ValueError as error:
            raise ValueError(
                f"`--{option} {text}` must give columns a number each, such as income=1,debt=-1"
            ) from error
        if (name := name.strip()) in found:
            raise ValueError(f"`--{option} {text}` names {name!r} twice; name each column once")
        found[name] = rate
    return found


def lipschitz_of(text: str, features: Sequence[str]) -> Any:
    """What `--lipschitz` says: a number, numbers by feature, auto, or learned."""
    if text in ("auto", "learned"):
        return text
    pairs = [part.partition("=") for part in listed(text)]
    try:
        if len(pairs) == 1 and not pairs[0][1]:
            return check_positive("lipschitz", float(text))
        named = {
            name.strip(): check_positive("lipschitz", float(value)) for name, _, value in pairs
        }
    except ValueError as error:
        raise ValueError(
            f"`--lipschitz {text}` must be a positive number such as 2, or a=2,b=0.5, or auto, or "
            "learned"
        ) from error
    unknown = [name for name in named if name not in features]
    if unknown or len(named) < len(pairs):
        name = unknown[0] if unknown else "a feature twice"
        known = f"choose from {', '.join(features[:20])}"
        hint = f" ({suggest(name, features, known)})" if unknown else ""
        raise ValueError(f"`--lipschitz {text}` names {name}{hint}; give every feature once")
    missing = [name for name in features if name not in named]
    if missing:
        every = [f"{name}={named.get(name, 1):g}" for name in features]
        raise ValueError(
            f"`--lipschitz {text}` lacks {missing[0]!r}; give λ for every feature, as in "
            f"`{spelled('lipschitz', *every)}`"
        )
    return named


def interactions_of(texts: Sequence[str] | None, features: Sequence[str]) -> Any:
    """What `--interaction-cst` says: a word for all columns, or one group of them each time.

    >>> interactions_of(["age,income", "city"], ["age", "city", "income"])
    [('age', 'income'), ('city',)]
    """
    if not texts or list(texts) in (["no_interactions"], ["pairwise"]):
        return texts[0] if texts else None
    groups = [listed(text) for text in texts]
    for text in (text for text, group in zip(texts, groups, strict=True) if not group):
        raise ValueError(
            f"`--interaction-cst {text!r}` names no feature; a group has at least one: give some, "
            "such as `--interaction-cst a,b`, no_interactions or pairwise, or leave it out"
        )
    for name in (name for group in groups for name in group if name not in features):
        hint = suggest(name, features, f"choose from {', '.join(features[:20])}")
        raise ValueError(
            f"`--interaction-cst` names {name!r}, which is not a feature ({hint}); give groups of "
            "features, such as `--interaction-cst a,b --interaction-cst c,d`, no_interactions or "
            "pairwise"
        )
    return groups


def _split(text: str, mark: str) -> list[str]:
    """What is between marks outside of double quotes."""
    return re.findall(rf"(?:(?:^|(?<=[,:=<\s])){_QUOTED}|[^{mark}])+", text)


def _unquoted(quoted: re.Match[str]) -> str:
    return quoted[1][1:-1].replace('""', '"')


def spelled(option: str, *names: str) -> str:
    """An option as it can be pasted into a shell.

    >>> spelled("features", "total income", "debt")
    "--features 'total income,debt'"
    """
    value = shlex.quote(",".join(map(_quoted, names)))
    return f"--{option}{'=' if value.startswith('-') else ' '}{value}"


def _quoted(name: str) -> str:
    plain = name and name == name.strip() and "," not in name and '"' not in name
    return name if plain else '"' + name.replace('"', '""') + '"'


def numbers_of(text: str, option: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        numbers = tuple(float(part) for part in listed(text))
    except ValueError as error:
        raise ValueError(
            f"`--{option} {text}` must be numbers separated by commas, such as 1,2,4"
        ) from error
    if not numbers:
        raise ValueError(f"`--{option} {text}` has no numbers; give some, such as 1,2,4")
    return numbers


def one_number(text: str, option: str) -> float:
    """Exactly one number."""
    if len(listed(text)) != 1:
        raise ValueError(f"`--{option} {text}` must be a single number; give only one")
    return numbers_of(text, option)[0]


def size_of(text: str) -> int | None:
    """The size of a group, None for "full"."""
    if text == "full":
        return None
    size = one_number(text, "group-size")
    if not size >= 1 or not size.is_integer():
        raise ValueError(
            f"`--group-size {text}` must be a whole number of at least 1, or full; choose 2 or 8, "
            "for example"
        )
    return int(size)


def sizes_of(text: str) -> tuple[int, ...]:
    """Widths of hidden layers separated by commas."""
    sizes = [part.isdecimal() and int(part) > 0 for part in listed(text)]
    if not sizes or not all(sizes):
        raise ValueError(
            f"`--hidden-layer-sizes {text}` must be whole numbers of at least 1, such as 32,32, "
            "or 16"
        )
    return tuple(int(part) for part in listed(text))


def counts_of(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers separated by commas, or a range such as 0:100."""
    first, colon, last = text.partition(":")
    try:
        parts = range(int(first), int(last)) if colon else [int(part) for part in listed(text)]
    except ValueError as error:
        raise ValueError(
            f"`--{option} {text}` must be whole numbers, such as 0:100 or 1,2,3"
        ) from error
    if any(part < 0 for part in parts):
        raise ValueError(
            f"`--{option} {text}` has a negative number; give numbers from 0 on, such as 0:100 or "
            "1,2,3"
        )
    if not parts:
        raise ValueError(f"`--{option} {text}` has no numbers; give some, such as 0:100 or 1,2,3")
    return tuple(parts)
