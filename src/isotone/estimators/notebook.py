"""What a notebook shows of an estimator: the verdict on what it learned, and its parameters."""

from __future__ import annotations

from typing import Any

from isotone.frozen.notebook import badge


class WithBadge:
    """Puts the verdict of `certificate_`, if there is one, before scikit-learn's diagram."""

    def _repr_html_inner(self) -> str:
        return self._verdict() + str(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        diagram = found.get("text/html")
        return found if diagram is None else found | {"text/html": self._verdict() + diagram}

    def _verdict(self) -> str:
        certificate = getattr(self, "certificate_", None)
        if certificate is None:
            return ""
        words = "certificate holds: " if certificate.holds else "certificate FAILS: "
        return f"<p>{badge(certificate.holds, words + certificate.guarantee)}</p>"
