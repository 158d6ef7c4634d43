"""Look for what keeps people out of a page, with axe-core."""

from axe_playwright_python.sync_playwright import Axe

#: The whole page is read, so that a rule may not be forgotten.
_AXE = Axe()


def violations(page):
    """Return what axe finds on a page as it is now: the rule and the element, one text each."""
    found = _AXE.run(page).response["violations"]
    return [f"{rule['id']}: {node['html'][:160]}" for rule in found for node in rule["nodes"]]
