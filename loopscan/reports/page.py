"""One offline page of HTML: its assets inline, its policy of content, and data that nothing can break out of.

The page loads nothing. A content security policy lets its own scripts and styles run by their hash, and nothing else.
Jinja is imported when a page is made.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from loopscan.reports.encode import encode

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# What would end a script, or begin a comment or an entity in one; JSON means the same by its escape.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def render(template: str, *, styles: Sequence[str], scripts: Sequence[str], **values: Any) -> str:  # noqa: ANN401
    """Return a template of ``loopscan/reports/templates`` with its values, all of them escaped.

    ``styles`` and ``scripts`` name files of ``loopscan/reports/assets``; the template gets their texts under these
    names, and the content security policy that lets them be used as ``policy``.
    """
    from markupsafe import Markup

    css, code = [asset(name) for name in styles], [asset(name) for name in scripts]
    return (
        _environment()
        .get_template(template)
        .render(
            styles=[Markup(text) for text in css],
            scripts=[Markup(text) for text in code],
            policy=policy(css, code),
            **values,
        )
    )


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the content security policy of a page with these texts in it, and nothing from elsewhere."""
    hashes = [
        " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts) or "'none'"
        for texts in (scripts, styles)
    ]
    return f"default-src 'none'; script-src {hashes[0]}; style-src {hashes[1]}; base-uri 'none'; form-action 'none'"


def asset(name: str) -> str:
    """Return the text of a file of ``loopscan/reports/assets``."""
    return (files("loopscan") / "reports" / "assets" / name).read_text("utf-8")


def embedded(value: object) -> Markup:
    """Return ``value`` as JSON that can stand within a ``script`` element, whatever texts are in it."""
    from markupsafe import Markup

    document = encode(value).decode().rstrip("\n")
    for char, escape in _ESCAPES.items():
        document = document.replace(char, escape)
    return Markup(document)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=True,
        loader=PackageLoader("loopscan.reports"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
