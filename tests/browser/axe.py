"""Look for what keeps people out of a page, with axe-core."""

from axe_playwright_python.sync_playwright import Axe

#: The whole page is read, so that a rule may not be forgotten.
_AXE = Axe()
#: Colours that are on their way to another are nobody's for longer than an eighth of a second.
_SETTLED = """() => Promise.allSettled(
  document.getAnimations().filter((a) => a instanceof CSSTransition).map((a) => a.finished)
)"""


def violations(page):
    """Return what axe finds on a page as it is now: the rule and the element, one text each."""
    page.evaluate(_SETTLED)
    found = _AXE.run(page).response["violations"]
    return [f"{rule['id']}: {node['html'][:160]}" for rule in found for node in rule["nodes"]]
