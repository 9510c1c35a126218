"""How Sphinx makes the documentation: `make docs`. No page needs the network to be read.

Formulas become MathML, which browsers show without a script. Signatures are shown as they are
written in the source, and "name : what it is" in a docstring is a name and a text, not a type.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext import autosummary
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import isotone
from isotone import cli

_ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(_ROOT))
from playground.page import assemble  # noqa: E402

project = "isotone"
version = release = isotone.__version__
copyright = "the authors of isotone, MIT license"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # a word in backticks need not be a name
    ("py:class", r"(?!isotone\.).*"),  # in signatures: names of other libraries, short names
]

html_theme = "furo"
html_title = f"isotone {release}"
html_static_path = ["_static"]
_SITE = _ROOT / "build" / "site"  # where `demo.gallery` writes
html_extra_path = [str(_SITE)] if _SITE.exists() else []
html_css_files = ["isotone.css"]
html_js_files = ["copy.js"]
html_math_renderer = "mathml"
html_show_sphinx = html_copy_source = False

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_default_options = {"members": True}
autosummary_generate = False
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.",)  # a sentence does not end there
python_maximum_signature_line_length = 88

logger = logging.getLogger(__name__)
_SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Notes", "Examples")
_ENTRY = re.compile(r"([\w*][\w*,. ]*?) : (.*)")
_QUOTED = re.compile(r"(: |-> )'([^']*)'")


class Commands(SphinxDirective):
    """A section for every command of `isotone`: its help, and its options, each with an anchor."""

    def run(self) -> list[nodes.Node]:
        commands: dict[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore
        return [self._section(name, command) for name, command in commands.items()]

    def _section(self, name: str, command: Any) -> nodes.section:
        section = nodes.section("", nodes.title("", f"isotone {name}"), ids=[f"isotone-{name}"])
        words = " ".join(
            piece for piece in command.collect_usage_pieces(command.context_class(command))
        )
        usage = f"isotone {name} {words}"
        section += nodes.literal_block(usage, usage, language="text")
        known = {word: _place(name, each) for each in command.params for word in each.opts}
        section += [_words(text, known) for text in (command.help or "").split("\n\n")]
        panels: dict[str, list[Any]] = {}
        for each in command.params:
            kind = "Arguments" if each.param_type_name == "argument" else "Options"
            panels.setdefault(each.rich_help_panel or kind, []).append(each)
        for panel, members in panels.items():
            section += nodes.rubric("", panel)
            entries = [self._option(name, each) for each in members]
            section += nodes.definition_list("", *entries, classes=["options"])
        return section

    def _option(self, command: str, option: Any) -> nodes.definition_list_item:
        place = _place(command, option)
        names = " / ".join([*option.opts, *option.secondary_opts])
        link = nodes.reference("", "¶", refuri=f"#{place}", classes=["headerlink"])
        term = nodes.term("", "", nodes.literal("", names), nodes.Text(" "), link, ids=[place])
        default = option.default
        shown = (
            "" if default in (None, False, True) or callable(default) else f" Default: {default}."
        )
        needed = " Required." if option.required else ""
        text = _words(f"{option.help or ''}{needed}{shown}", {})
        return nodes.definition_list_item("", term, nodes.definition("", text))


def _place(command: str, option: Any) -> str:
    """The anchor of an option."""
    return f"isotone-{command}-{option.name.strip('_').replace('_', '-')}"


def _words(text: str, known: dict[str, str]) -> nodes.paragraph:
    """A paragraph in which options are code, and lead to where they are described."""
    found = nodes.paragraph()
    for word in re.split(r"(--[a-z][\w-]*)", text):
        code = nodes.literal("", word) if word.startswith("--") else nodes.Text(word)
        place = known.get(word)
        found += nodes.reference("", "", code, refuri=f"#{place}") if place else code
    return found


def setup(app: Sphinx) -> None:
    app.add_directive("commands", Commands)
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    app.connect("autodoc-process-docstring", _lay_out)
    app.connect("autodoc-process-signature", _as_written)
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _link_names)
    app.connect("doctree-read", _caption)
    app.connect("build-finished", _write_playground)


def _write_playground(app: Sphinx, error: Exception | None) -> None:
    """The page that opens model files; a fraction of a second, so that it is always there."""
    if error is None and app.builder.format == "html":
        path = Path(app.outdir) / "live" / "playground.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(assemble(), encoding="utf-8")


def _link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Let names of the library in backticks lead to the reference, on every page."""
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().removesuffix("()")
        if isinstance(literal.parent, nodes.reference | addnodes.pending_xref):
            continue
        if re.fullmatch(r"[A-Za-z_][\w.]*", name) and (target := _home(name)):
            options = {"refdomain": "py", "reftype": "obj", "reftarget": target}
            link = addnodes.pending_xref("", refdoc=app.env.docname, refexplicit=True, **options)
            literal.replace_self(link)
            link.append(literal)


def _caption(_app: Sphinx, doctree: nodes.document) -> None:
    """Make figures of pictures that stand alone, with captions: in italics below, or the alt."""
    for image in list(doctree.findall(nodes.image)):
        alone = image.parent
        if not isinstance(alone, nodes.paragraph) or len(alone) != 1 or not image.get("alt"):
            continue
        place, below = alone.parent, alone.next_node(descend=False, siblings=True)
        words = [nodes.Text(image["alt"].rstrip(".") + ".")]
        is_caption = isinstance(below, nodes.paragraph) and len(below) == 1
        if is_caption and isinstance(below[0], nodes.emphasis):
            words = below[0].children
            place.remove(below)
        figure = nodes.figure("", image, nodes.caption("", "", *words))
        figure["ids"] = [Path(image["uri"]).stem.replace("_", "-")]
        place.replace(alone, figure)


def _home(name: str) -> str | None:
    """Where `isotone.certify`, `FrozenNetwork.score` and the like are documented."""
    first, _, rest = name.removeprefix("isotone.").partition(".")
    if first in isotone._HOME and (first[0].isupper() or name.startswith("isotone.")):
        return f"isotone.{isotone._HOME[first]}.{first}" + (f".{rest}" if rest else "")
    return name if name.startswith("isotone.") else None


def _inline_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block_math(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: Any, as_block: bool) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        logger.warning("%s in the formula %s", error, node.astext(), location=node)
        return ""


def _lay_out(_app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, lines: Any) -> None:
    """Make headings of the sections of a docstring, and of "name : text" a name and its text."""
    result, section = [], ""
    for line, below in zip(lines, [*lines[1:], ""], strict=False):  # no lines at all are none
        entry = _ENTRY.fullmatch(line) if section in ("Parameters", "Attributes") else None
        if line in _SECTIONS and below.startswith("---"):
            section = line
            result += [f".. rubric:: {line}", ""]
        elif entry:
            result += [f"``{entry[1]}``", f"    {entry[2]}"]
        elif not (section and line.startswith("---")):
            result.append(line)
    lines[:] = result


def _as_written(
    _app: Sphinx, _what: str, _name: str, obj: Any, _options: Any, signature: Any, returns: Any
) -> tuple[Any, Any]:
    """The signature with its annotations as in the source, where aliases have names."""
    if not signature:
        return signature, returns
    try:
        text = _QUOTED.sub(r"\1\2", str(inspect.signature(obj)))
    except (TypeError, ValueError):
        return signature, returns
    arguments, _, result = text.partition(") -> ")
    return f"{arguments.rstrip(')')})" if not result else f"{arguments})", result or None


def _skip(_app: Sphinx, _what: str, name: str, _obj: Any, _skip: bool, _opt: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator."""
    return True if re.fullmatch(r"set_\w+_request", name) else None
