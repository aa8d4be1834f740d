"""The elements of a page."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr", "path"}


@dataclass
class Element:
    tag: str
    attributes: dict
    ancestors: tuple
    text: str = ""
    children: list = field(default_factory=list)

    def __getitem__(self, name):
        return self.attributes.get(name)


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.open = [], []

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs), tuple(self.open))
        if self.open:
            self.open[-1].children.append(element)
        self.found.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.found.append(Element(tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.text += data


def elements(page):
    """Return the elements of a page in their order; a page that is not well formed is an error."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader.found
