"""A strict reading of HTML: every element is closed in its turn, ids and attributes are unique."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Reader(HTMLParser):
    """Elements as (tag, attributes), and the text of each kind of element."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts = [], [], []
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        assert len(ids) == len(set(ids))

    def handle_starttag(self, tag, attrs, *, closed=False):
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> stands twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID and not closed:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs, closed=True)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data):
        raise AssertionError(f"the page has a comment: {data}")

    def text(self, *tags):
        """Return all text, or that of some elements."""
        return " ".join(" ".join(data for tag, data in self.texts if not tags or tag in tags).split())

    def all(self, tag):
        """Return the attributes of all elements of a kind."""
        return [attributes for one, attributes in self.elements if one == tag]
