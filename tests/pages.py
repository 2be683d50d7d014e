"""What every page is tested with: a strict reader, and texts that try to be more than text."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "img", "link"}
EMPTY_SVG = {"path", "circle", "rect"}
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "<!-- <script> ]]>",
    "\"' onmouseover=alert(3) x='",
    "line\u2028separator\u2029and \u202eright-to-left override",
    "$title ${data} {0} %s &lt;b&gt;",
    "javascript:alert(4)",
)


class Reader(HTMLParser):
    """Checks that every element is closed in order, and collects what matters."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in EMPTY_SVG
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text_of(self, tag: str) -> list[str]:
        return [text for inside, text in self.texts if inside == tag]

    def values_of(self, attribute: str) -> list[str]:
        return [value or "" for _, name, value in self.attributes if name == attribute]
