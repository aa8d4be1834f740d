"""Dependence in a graph, straight from the rules: walk every path, and look whether something blocks it."""


def descendants(edges, node):
    """Return a node and all that comes after it."""
    found = {node}
    while True:
        more = found | {end for start, end in edges if start in found}
        if more == found:
            return found
        found = more


def simple_paths(edges, start, goal, walked=()):
    """Yield every path between two nodes that visits no node twice, whatever the direction of the edges."""
    walked = (*walked, start)
    if start == goal:
        yield walked
        return
    neighbours = {b for a, b in edges if a == start} | {a for a, b in edges if b == start}
    for node in sorted(neighbours - set(walked)):
        yield from simple_paths(edges, node, goal, walked)


def is_open(edges, path, given):
    """Tell whether dependency flows along a path, by the two rules of the paper."""
    for before, node, after in zip(path, path[1:], path[2:], strict=False):
        collides = (before, node) in edges and (after, node) in edges
        if collides and not descendants(edges, node) & set(given):
            return False
        if not collides and node in given:
            return False
    return True


def dependent(edges, a, b, given):
    """Tell whether any path between two nodes is open."""
    return any(is_open(edges, path, given) for path in simple_paths(edges, a, b))
